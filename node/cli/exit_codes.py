"""The meaning of the exit codes of the `strandline` command, for its help."""

from collections.abc import Iterable

from strandline.errors import ExitCode

EXIT_CODES = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed; the message has the reason and the remedy",
    ExitCode.USAGE: "invalid command line or settings; nothing was done",
    ExitCode.DATA_LOST: "data is lost; the message names the range",
    ExitCode.VERIFY_FAILED: "the verification found differences",
    ExitCode.FENCED: "another process owns the shard, or has taken it over",
    ExitCode.NOT_READY: "the hour, day or node is not ready, or this is not known",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}


def exit_codes(codes: Iterable[ExitCode] = ExitCode) -> str:
    """The exit codes at the end of a command's help. The backspace makes click keep the line breaks."""
    return "\b\nExit codes:\n" + "\n".join(f"  {code.value:<4}{EXIT_CODES[code]}" for code in codes)

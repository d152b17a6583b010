"""What the exit codes of the `strandline` command mean, for its help."""

from collections.abc import Iterable

from strandline.errors import ExitCode

EXIT_CODES = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed; the message says why and what to do",
    ExitCode.USAGE: "wrong command line or settings; nothing was done",
    ExitCode.DATA_LOST: "data is lost: the message names the range",
    ExitCode.VERIFY_FAILED: "a verification found differences",
    ExitCode.FENCED: "the shard belongs to another process, or is taken by one",
    ExitCode.NOT_READY: "the hour, the day or the node is not ready, or nobody can tell",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
}


def exit_codes(codes: Iterable[ExitCode] = ExitCode) -> str:
    """The end of a command's help: its exit codes. (The backspace tells click to keep the lines.)"""
    return "\b\nExit codes:\n" + "\n".join(f"  {code.value:<4}{EXIT_CODES[code]}" for code in codes)

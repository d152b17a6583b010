"""Why a child process ended: the error that it printed as JSON on stdout, or else the last line of its log."""

import json
from dataclasses import dataclass

MAX_STDOUT_BYTES = 64 << 10
"""How much of a child's stdout is read: one JSON document, or what a JVM prints when it aborts."""
_MAX_LINE = 500
# Log levels of lines that don't explain why a process ended.
_ROUTINE_LEVELS = ("debug", "info")


@dataclass(frozen=True, slots=True)
class ExitReason:
    """A process's own error message, with a remedy if it gave one. `retryable`: the same command may succeed later with
    nothing changed. `full_disk` is the path whose disk needs room first.
    """

    message: str = ""
    remedy: str = ""
    retryable: bool = False
    full_disk: str = ""

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


def exit_reason(printed: bytes, last_line: str) -> ExitReason:
    """The reason, from what the process printed on stdout and the last line of its log."""
    try:
        error = json.loads(printed)["error"]
        full_disk = _text(error.get("full_disk", ""))
        return ExitReason(_text(error["message"]), _text(error["remedy"]), error.get("retryable") is True, full_disk)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ExitReason(_text(_event_of(last_line)[:_MAX_LINE]))


def _text(value: object) -> str:
    """As valid Unicode: a message may quote a path that is not."""
    return str(value).encode(errors="replace").decode()


def _event_of(line: str) -> str:
    """The message of a log line, in JSON or text; empty if its level is routine."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict):
        return line
    return "" if record.get("level") in _ROUTINE_LEVELS else str(record.get("event", line))

"""The tree of errors that every package shares.

An error names the thing, its value and what to do about it. `Retryable` means that the same call may work later with
nothing changed; `Fatal` means that it will not until a person changes something. Code that retries catches
`Retryable` and nothing wider.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the `strandline` command returns to the shell; scripts rely on these numbers."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DATA_LOST = 3
    VERIFY_FAILED = 4
    FENCED = 5
    NOT_READY = 6
    INTERRUPTED = 130


class StrandlineError(Exception):
    """An error that a user can read: what is wrong, and a remedy where there is one."""

    exit_code = ExitCode.FAILED
    transient = False
    """Whether a new process may work later with nothing changed."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class Retryable(StrandlineError):
    """The same call may work later."""

    transient = True


class Fatal(StrandlineError):
    """The same call will not work until a person changes something."""

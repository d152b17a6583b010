"""The base classes of all errors.

A message names the object, the value and the remedy. `Retryable`: the same call may succeed later without any change.
`Fatal`: it will fail until a person changes something. Code that retries catches `Retryable` only, not a base class.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of the `strandline` command. Scripts rely on these numbers."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DATA_LOST = 3
    VERIFY_FAILED = 4
    FENCED = 5
    NOT_READY = 6
    INTERRUPTED = 130


class StrandlineError(Exception):
    """An error for users: what is wrong, and the remedy if there is one."""

    exit_code = ExitCode.FAILED
    transient = False
    """Whether a new process may succeed later without any change, even if the error is fatal for this process."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}. {self.remedy}" if self.remedy else self.message


class Retryable(StrandlineError):
    """The same call may succeed later."""

    transient = True


class Fatal(StrandlineError):
    """The same call will fail until a person changes something."""

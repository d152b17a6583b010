"""Errors in test scripts."""

from strandline.errors import ExitCode, Fatal


class ScriptError(Fatal):
    """A script that does not follow the format. `line` counts from 1."""

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line

"""The token that a person may show, from a file of theirs."""

import os
import re
import stat
from pathlib import Path

from strandline.errors import ExitCode, Fatal

_MAX_FILE_BYTES = 4096
# What may stand in a header behind "Bearer".
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,512}", re.ASCII)


class BadTokenFile(Fatal):
    """A file that no token can be read from, or that others can read, too."""

    exit_code = ExitCode.USAGE


def read_token(path: Path) -> str:
    """The only line of a file that is its owner's alone. Raises `BadTokenFile`, which never repeats the content."""
    try:
        # A pipe must not make the command wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise BadTokenFile(f"{path} is not a regular file", remedy="Name a file whose only line is the token")
            if mode & 0o077:
                raise BadTokenFile(
                    f"{path} is open to others than its owner (mode {stat.S_IMODE(mode):03o})",
                    remedy=f"Run `chmod 600 {path}`",
                )
            content = file.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise BadTokenFile(
            f"{path} can't be read: {error.strerror}", remedy="Name a file whose only line is the token"
        ) from None
    token = content.decode("ascii", errors="replace").rstrip("\r\n")
    if _TOKEN.fullmatch(token) is None:
        raise BadTokenFile(f"{path} holds no usable token", remedy="A file whose only line is the token")
    return token

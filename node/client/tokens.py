"""Reads a token from a file."""

import os
import re
import stat
from pathlib import Path

from strandline.errors import ExitCode, Fatal

_MAX_FILE_BYTES = 4096
# The characters allowed in a header after "Bearer".
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,512}", re.ASCII)


class BadTokenFile(Fatal):
    """A file without a valid token, or that other users can read."""

    exit_code = ExitCode.USAGE


def read_token(path: Path) -> str:
    """The only line of a file that only its owner can read. Raises `BadTokenFile`, whose message never contains the
    content.
    """
    try:
        # Non-blocking, so that the command does not wait for a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise BadTokenFile(f"{path} is not a regular file", remedy="Give a file whose only line is the token")
            if mode & 0o077:
                raise BadTokenFile(
                    f"{path} is accessible to other users (mode {stat.S_IMODE(mode):03o})",
                    remedy=f"Run `chmod 600 {path}`",
                )
            content = file.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise BadTokenFile(
            f"{path} can't be read: {error.strerror}", remedy="Give a file whose only line is the token"
        ) from None
    token = content.decode("ascii", errors="replace").rstrip("\r\n")
    if _TOKEN.fullmatch(token) is None:
        raise BadTokenFile(f"{path} contains no valid token", remedy="Give a file whose only line is the token")
    return token

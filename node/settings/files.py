"""Settings that name a file.

A file is opened when the settings are read, so that `check-config` finds a wrong path, a folder or a file with wrong
permissions, and not the first connection. Secrets are read once, and kept as `SecretStr`, which hides them in logs.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import PlainValidator, SecretStr

from strandline.node.settings.findings import invalid

# Far more than any key, certificate bundle or password needs. A wrong path may lead to a large log or a device.
_MAX_SIZE = 4 << 20


# What a header may have after "Bearer", and long enough that it can't be guessed.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}", re.ASCII)
_USABLE_LINE = "16 to 512 letters, digits or -._~+/=, such as `openssl rand -hex 32` prints"
# Each request is compared with all tokens.
_MAX_TOKENS = 16


def user_state(environ: Mapping[str, str]) -> Path:
    """Our folder in the user's state folder, according to the XDG specification."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    # The specification requires that a relative path is ignored.
    base = state if state.is_absolute() else Path("~/.local/state").expanduser()
    return base / "strandline"


class PathSetting:
    """Marks a setting as a path, which is relative to the folder of the settings file, or to the current folder."""


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """A path as written in the settings, and the folder that it is relative to."""

    text: str
    folder: Path

    @property
    def path(self) -> Path:
        """The path itself; `~` is the home folder."""
        return self.folder / Path(self.text).expanduser()

    @property
    def looks_like_path(self) -> bool:
        """Whether it is certainly a path, and not a password in the wrong place: it is in a folder that exists. Only
        then may it be shown.
        """
        try:
            return "/" in self.text and self.path.parent.is_dir()
        except (OSError, ValueError, RuntimeError):
            return False


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """A file with certificates in PEM format. They are not secret."""

    path: Path
    content: str = field(repr=False)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class SecretFile:
    """A file whose content is a secret: a private key, or the password of one."""

    path: Path
    content: SecretStr

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class TokensFile:
    """A file with a token on each line. All of them are valid, so that one can be replaced without a gap."""

    path: Path
    tokens: tuple[SecretStr, ...]

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class CredentialsFile:
    """A file with a user on its first line and that user's password on the second."""

    path: Path
    username: str
    password: SecretStr

    def __str__(self) -> str:
        return str(self.path)


def _written(value: object, *, secret: bool) -> WrittenPath | None:
    """The path of a value; None for an empty text, which means "no file"."""
    match value:
        case None | "":
            return None
        case WrittenPath():
            return value if value.text else None
        case Path():
            return WrittenPath(str(value), Path())
        case str():
            return WrittenPath(value, Path())
        case _:
            raise invalid("is not a path", 'A path in quotes, or "" for none', hidden=secret)


def _read(written: WrittenPath, *, secret: bool) -> str:
    """The text of the file. A secret file must not be accessible by others than its owner."""
    hidden = secret and not written.looks_like_path
    hint = " (the value is not shown, since it may be a secret itself)" if hidden else ""
    try:
        status, content = _open_and_read(written.path)
    except FileNotFoundError:
        raise invalid(f"does not exist{hint}", "The path of a file that exists", hidden=hidden) from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no usable path"
        remedy = "The path of a file that this user can read"
        raise invalid(f"can't be read: {reason}{hint}", remedy, hidden=hidden) from None
    if secret and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise invalid(f"is accessible by others than its owner (mode {mode:03o})", f"Run `chmod 600 {written.path}`")
    if len(content) > _MAX_SIZE:
        raise invalid("is too large for such a file", "The path of the right file")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise invalid("is not a text file", "A file with UTF-8 text (PEM, for keys and certificates)") from None


def _open_and_read(path: Path) -> tuple[os.stat_result, bytes]:
    # One descriptor for both, so that the file that is read is the file that was checked. O_NONBLOCK: opening a pipe
    # must not block.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return status, os.read(descriptor, _MAX_SIZE + 1)
    finally:
        os.close(descriptor)


def _lines(content: str) -> list[str]:
    """The lines of a file, without empty ones at its end. Only line feeds separate lines, since a password may contain
    any other character.
    """
    return [line.removesuffix("\r") for line in content.rstrip("\r\n").split("\n")]


def _certificates(value: object) -> CertificateFile | None:
    written = _written(value, secret=False)
    if written is None:
        return None
    content = _read(written, secret=False)
    if "-----BEGIN CERTIFICATE-----" not in content:
        raise invalid("contains no certificate", 'A file in PEM format, with "-----BEGIN CERTIFICATE-----" in it')
    return CertificateFile(written.path, content)


def _private_key(value: object) -> SecretFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    content = _read(written, secret=True)
    if "PRIVATE KEY-----" not in content:
        raise invalid("contains no private key", 'A file in PEM format, with "-----BEGIN PRIVATE KEY-----" in it')
    return SecretFile(written.path, SecretStr(content))


def _password(value: object) -> SecretFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    lines = _lines(_read(written, secret=True))
    if len(lines) != 1 or not lines[0]:
        raise invalid("does not have exactly one line", "A file whose only line is the password")
    return SecretFile(written.path, SecretStr(lines[0]))


def _tokens(value: object) -> TokensFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    lines = [line for line in _lines(_read(written, secret=True)) if line.strip()]
    if not lines:
        raise invalid("contains no token", f"A file with a token on each line: {_USABLE_LINE}")
    if len(lines) > _MAX_TOKENS:
        raise invalid(f"contains {len(lines)} tokens", f"At most {_MAX_TOKENS} lines: remove tokens that are not used")
    for number, line in enumerate(lines, 1):
        if _TOKEN.fullmatch(line) is None:
            where = f" in token {number} of {len(lines)}" if len(lines) > 1 else ""
            raise invalid(f"contains an invalid token{where}", f"On each line {_USABLE_LINE}")
    return TokensFile(written.path, tuple(map(SecretStr, lines)))


def _credentials(value: object) -> CredentialsFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    lines = _lines(_read(written, secret=True))
    if len(lines) != 2 or not all(lines):
        raise invalid("does not have exactly two lines", "A file with the user on line 1 and the password on line 2")
    return CredentialsFile(written.path, lines[0], SecretStr(lines[1]))


def _new_or_existing(value: object, is_kind: Callable[[int], bool], kind: str) -> Path | None:
    """The path of a file or folder that is of this kind, or does not exist yet."""
    written = _written(value, secret=False)
    if written is None:
        return None
    remedy = f"The path of a {kind}, existing or not"
    try:
        is_other_kind = not is_kind(written.path.stat().st_mode)
    except FileNotFoundError:
        return written.path
    except (OSError, ValueError, RuntimeError):
        raise invalid("is not a usable path", remedy) from None
    if is_other_kind:
        raise invalid(f"is not a {kind}", remedy)
    return written.path


def _folder(value: object) -> Path | None:
    return _new_or_existing(value, stat.S_ISDIR, "folder")


def _own_file(value: object) -> Path | None:
    return _new_or_existing(value, stat.S_ISREG, "file")


def _java_home(value: object) -> Path | None:
    home = _folder(value)
    if home is not None and not os.access(home / "bin" / "java", os.X_OK):
        raise invalid("contains no bin/java", 'The home of a JDK 17, or "" for the one that set-up found')
    return home


certificates = PlainValidator(_certificates)
private_key = PlainValidator(_private_key)
password_file = PlainValidator(_password)
token_file = PlainValidator(_tokens)
credentials_file = PlainValidator(_credentials)
folder = PlainValidator(_folder)
own_file = PlainValidator(_own_file)
java_home = PlainValidator(_java_home)

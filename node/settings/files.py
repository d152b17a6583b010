"""Settings that name a file.

A file is opened when the settings are read, so that a wrong path, a folder or a file that everybody can read is found
by `check-config` and not by the first connection. What is secret in it is read once and carried as `SecretStr`, which
shows itself to nobody.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import PlainValidator, SecretStr

from strandline.node.settings.findings import nonsense

# No key, certificate bundle or password is near this; a mistaken path such as a device or a log may be far beyond.
_LARGEST = 4 << 20


# What may stand in a header behind "Bearer", and is long enough not to be guessed.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{16,512}", re.ASCII)
_USABLE_LINE = "16 to 512 letters, digits or -._~+/=, such as `openssl rand -hex 32` prints"
# Each request is compared with all of them.
_MAX_TOKENS = 16


def user_state(environ: Mapping[str, str]) -> Path:
    """Our folder at the place where the XDG rules put a user's state."""
    state = Path(environ.get("XDG_STATE_HOME", ""))
    # The rules say that a relative path there is to be ignored.
    base = state if state.is_absolute() else Path("~/.local/state").expanduser()
    return base / "strandline"


class PathSetting:
    """Marks a setting as a path, which is relative to the place where it is written."""


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """A path as somebody wrote it, and the folder it is relative to."""

    text: str
    folder: Path

    @property
    def path(self) -> Path:
        """The path itself; `~` is the home folder."""
        return self.folder / Path(self.text).expanduser()

    @property
    def looks_like_path(self) -> bool:
        """Whether it surely is a path and not, say, a password that was put in the wrong place: it names a folder
        that exists. Only then may it be shown.
        """
        try:
            return "/" in self.text and self.path.parent.is_dir()
        except (OSError, ValueError, RuntimeError):
            return False


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """A file with certificates in PEM format, which anybody may read."""

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
    """The path behind a value; nothing for the empty text, which stands for "no file"."""
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
            raise nonsense("is not a path", 'A path in quotes, or "" for none', hidden=secret)


def _read(written: WrittenPath, *, secret: bool) -> str:
    """The text of the file; for a secret one, only if nobody but its owner has access to it."""
    hidden = secret and not written.looks_like_path
    hint = " (the value is not shown, since it may be a secret itself)" if hidden else ""
    try:
        status, content = _open_and_read(written.path)
    except FileNotFoundError:
        raise nonsense(f"does not exist{hint}", "The path of a file that exists", hidden=hidden) from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no usable path"
        remedy = "The path of a file that this user can read"
        raise nonsense(f"can't be read: {reason}{hint}", remedy, hidden=hidden) from None
    if secret and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise nonsense(f"is open to others than its owner (mode {mode:03o})", f"Run `chmod 600 {written.path}`")
    if len(content) > _LARGEST:
        raise nonsense("is far too large for what it should hold", "The path of the right file")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise nonsense("is not a text file", "A file with UTF-8 text (PEM, for keys and certificates)") from None


def _open_and_read(path: Path) -> tuple[os.stat_result, bytes]:
    # One descriptor for both, so that what is read is what was looked at; and a pipe must not make the start wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return status, os.read(descriptor, _LARGEST + 1)
    finally:
        os.close(descriptor)


def _lines(content: str) -> list[str]:
    """The lines of a file without the empty ones at its end. Only line feeds part lines: a password may have anything
    else in it.
    """
    return [line.removesuffix("\r") for line in content.rstrip("\r\n").split("\n")]


def _certificates(value: object) -> CertificateFile | None:
    written = _written(value, secret=False)
    if written is None:
        return None
    content = _read(written, secret=False)
    if "-----BEGIN CERTIFICATE-----" not in content:
        raise nonsense("holds no certificate", 'A file in PEM format, with "-----BEGIN CERTIFICATE-----" in it')
    return CertificateFile(written.path, content)


def _private_key(value: object) -> SecretFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    content = _read(written, secret=True)
    if "PRIVATE KEY-----" not in content:
        raise nonsense("holds no private key", 'A file in PEM format, with "-----BEGIN PRIVATE KEY-----" in it')
    return SecretFile(written.path, SecretStr(content))


def _password(value: object) -> SecretFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    lines = _lines(_read(written, secret=True))
    if len(lines) != 1 or not lines[0]:
        raise nonsense("does not hold one line", "A file whose only line is the password")
    return SecretFile(written.path, SecretStr(lines[0]))


def _tokens(value: object) -> TokensFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    lines = [line for line in _lines(_read(written, secret=True)) if line.strip()]
    if not lines:
        raise nonsense("holds no token", f"A file with a token on each line: {_USABLE_LINE}")
    if len(lines) > _MAX_TOKENS:
        raise nonsense(f"holds {len(lines)} tokens", f"At most {_MAX_TOKENS} lines: remove tokens that are not used")
    for number, line in enumerate(lines, 1):
        if _TOKEN.fullmatch(line) is None:
            where = f" in token {number} of {len(lines)}" if len(lines) > 1 else ""
            raise nonsense(f"holds no usable token{where}", f"On each line {_USABLE_LINE}")
    return TokensFile(written.path, tuple(map(SecretStr, lines)))


def _credentials(value: object) -> CredentialsFile | None:
    written = _written(value, secret=True)
    if written is None:
        return None
    lines = _lines(_read(written, secret=True))
    if len(lines) != 2 or not all(lines):
        raise nonsense("does not hold two lines", "A file with the user on line 1 and the password on line 2")
    return CredentialsFile(written.path, lines[0], SecretStr(lines[1]))


def _to_be_made(value: object, is_kind: Callable[[int], bool], kind: str) -> Path | None:
    """The path of something that may be made later, but can't be something else."""
    written = _written(value, secret=False)
    if written is None:
        return None
    remedy = f"The path of a {kind}, or of one to be made"
    try:
        in_the_way = not is_kind(written.path.stat().st_mode)
    except FileNotFoundError:
        return written.path
    except (OSError, ValueError, RuntimeError):
        raise nonsense("is no usable path", remedy) from None
    if in_the_way:
        raise nonsense(f"is not a {kind}", remedy)
    return written.path


def _folder(value: object) -> Path | None:
    return _to_be_made(value, stat.S_ISDIR, "folder")


def _own_file(value: object) -> Path | None:
    return _to_be_made(value, stat.S_ISREG, "file")


def _java_home(value: object) -> Path | None:
    home = _folder(value)
    if home is not None and not os.access(home / "bin" / "java", os.X_OK):
        raise nonsense("holds no bin/java", 'The home of a JDK 17, or "" for the one that set-up found')
    return home


certificates = PlainValidator(_certificates)
private_key = PlainValidator(_private_key)
password_file = PlainValidator(_password)
token_file = PlainValidator(_tokens)
credentials_file = PlainValidator(_credentials)
folder = PlainValidator(_folder)
own_file = PlainValidator(_own_file)
java_home = PlainValidator(_java_home)

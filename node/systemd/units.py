"""The units for systemd: the templates that come with the program, made to fit an installation. Pure, but for reading.

The templates in `conf/systemd/` are good units by themselves, for an installation in /usr; what differs elsewhere is
the program's path, the user, and whether the service may look into home folders.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from strandline.errors import ExitCode, Fatal

NODE, GATEWAY = "strandline-node@.service", "strandline-gateway@.service"
FOLDER = PurePosixPath("/etc/systemd/system")
_PROGRAM = "/usr/bin/strandline"
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII)
_HOMES = ("/home", "/root", "/run/user")
# Of which each service has its own.
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is written there


class UnitUnfit(Fatal):
    """A unit can't be written for what was asked."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class UnitPlace:
    """Where the program lies and what else it reads, and the user that it runs as."""

    program: Path
    user: str
    reads: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if _USER.fullmatch(self.user) is None:
            raise UnitUnfit(
                f"{self.user!r} is no user's name",
                remedy="At most 32 of a-z, 0-9, _ and -, a letter or _ first, such as strandline",
            )
        if not self.program.is_absolute() or any(character in str(self.program) for character in "\"'\\\n"):
            raise UnitUnfit(
                f"a unit can't name the program {str(self.program)!r}",
                remedy="Install it into a folder whose path has no quotes and backslashes",
            )

    @property
    def reads_homes(self) -> bool:
        """Whether something of it lies in a home folder."""
        return any(path.is_relative_to(home) for path in (self.program, *self.reads) for home in _HOMES)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit file."""

    name: str
    text: str


def units(place: UnitPlace) -> tuple[Unit, ...]:
    """The units of this program, for a place."""
    folder = Path(__file__).parent
    return tuple(Unit(name, fitted((folder / name).read_text(encoding="utf-8"), place)) for name in (NODE, GATEWAY))


def fitted(template: str, place: UnitPlace) -> str:
    """A template, made to fit."""
    text = re.sub(
        rf"^(ExecStart=){re.escape(_PROGRAM)}(?= )",
        lambda m: m[1] + unit_word(place.program),
        template,
        flags=re.MULTILINE,
    )
    text = re.sub(r"^User=.*$", f"User={place.user}", text, flags=re.MULTILINE)
    if place.reads_homes:
        text = re.sub(r"^ProtectHome=yes$", "ProtectHome=read-only", text, flags=re.MULTILINE)
    return text


def closed_to_others(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Folders on the way to these that only their owner and group may enter: a service's user may be shut out."""
    closed: dict[Path, None] = {}
    for path in paths:
        for folder in (path, *path.parents) if path.is_dir() else path.parents:
            if folder.exists() and not folder.stat().st_mode & 0o001:
                closed[folder] = None
    return tuple(sorted(closed))


def hidden(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Those of these that the service can't see, because it has temporary folders of its own."""
    return tuple(sorted({path for path in paths for folder in _TEMPORARY if path.is_relative_to(folder)}))


def unit_word(program: Path) -> str:
    """A path as a unit has it: a per cent sign is written twice, and a space needs quotes."""
    text = str(program).replace("%", "%%")
    return f'"{text}"' if " " in text else text

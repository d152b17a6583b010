"""Creates systemd units from the templates in `conf/systemd/`, to which this folder has links. Pure, except for reading
the templates.

The templates are valid units for an installation in /usr. For other installations, the program's path, the user, and
the access to home folders are replaced.
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
# Each service has its own (PrivateTmp).
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - nothing is written there


class UnitUnfit(Fatal):
    """A unit can't be created for this program or user."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class UnitTarget:
    """The program's path, the other paths that it reads, and the user that it runs as."""

    program: Path
    user: str
    reads: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if _USER.fullmatch(self.user) is None:
            raise UnitUnfit(
                f"{self.user!r} is not a valid user name",
                remedy="At most 32 of a-z, 0-9, _ and -, a letter or _ first, such as strandline",
            )
        if not self.program.is_absolute() or any(character in str(self.program) for character in "\"'\\\n"):
            raise UnitUnfit(
                f"a unit can't name the program {str(self.program)!r}",
                remedy="Install it into a folder whose path has no quotes and backslashes",
            )

    @property
    def reads_homes(self) -> bool:
        """Whether any of the paths is in a home folder."""
        return any(path.is_relative_to(home) for path in (self.program, *self.reads) for home in _HOMES)


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit file."""

    name: str
    text: str


def units(target: UnitTarget) -> tuple[Unit, ...]:
    """The units of the node and the gateway."""
    folder = Path(__file__).parent
    return tuple(
        Unit(name, fill_template((folder / name).read_text(encoding="utf-8"), target)) for name in (NODE, GATEWAY)
    )


def fill_template(template: str, target: UnitTarget) -> str:
    """Replace the program's path, the user and the protection of home folders in a template."""
    text = re.sub(
        rf"^(ExecStart=){re.escape(_PROGRAM)}(?= )",
        lambda m: m[1] + quoted_for_unit(target.program),
        template,
        flags=re.MULTILINE,
    )
    text = re.sub(r"^User=.*$", f"User={target.user}", text, flags=re.MULTILINE)
    if target.reads_homes:
        text = re.sub(r"^ProtectHome=yes$", "ProtectHome=read-only", text, flags=re.MULTILINE)
    return text


def private_folders(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Parent folders of these paths that only their owner and group can enter, so the service's user perhaps can't."""
    closed: dict[Path, None] = {}
    for path in paths:
        for folder in (path, *path.parents) if path.is_dir() else path.parents:
            if folder.exists() and not folder.stat().st_mode & 0o001:
                closed[folder] = None
    return tuple(sorted(closed))


def hidden_by_private_tmp(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths that the service can't access, because it has its own temporary folders (PrivateTmp)."""
    return tuple(sorted({path for path in paths for folder in _TEMPORARY if path.is_relative_to(folder)}))


def quoted_for_unit(program: Path) -> str:
    """A path in the syntax of unit files: a percent sign is doubled, and a path with a space is quoted."""
    text = str(program).replace("%", "%%")
    return f'"{text}"' if " " in text else text

"""Writing the units: what is there, what would be written, and what to do next."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from strandline.errors import ExitCode, Fatal
from strandline.node.output import Block
from strandline.node.systemd.units import FOLDER, Unit


class UnitFileState(StrEnum):
    """How a unit file was found."""

    NEW = "new"
    SAME = "unchanged"
    DIFFERENT = "replaced"


class UnitsDiffer(Fatal):
    """A unit file is there already, and says something else."""

    exit_code = ExitCode.USAGE


class UnitsUnwritable(Fatal):
    """The units can't be written."""


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A unit, where it belongs, and how that place was found."""

    path: str
    state: UnitFileState
    text: str


@dataclass(frozen=True, slots=True)
class UnitsReport:
    """What was written, or would be; and what to do next."""

    files: tuple[UnitFile, ...]
    written: bool
    next_steps: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        """For people. Without writing, the units themselves."""
        for file in self.files:
            if self.written:
                yield f"{file.path}: {'written' if file.state is UnitFileState.NEW else file.state.value}"
            else:
                would = "would be " if file.state is UnitFileState.DIFFERENT else ""
                yield f"# {file.path} ({would}{file.state.value})"
                yield file.text
        yield from (f"warning: {warning}" for warning in self.warnings)
        if self.next_steps:
            yield "Next:"
            yield from (f"  {step}" for step in self.next_steps)


def found_files(units: tuple[Unit, ...], root: Path) -> tuple[UnitFile, ...]:
    """The units and what lies in their places. Raises `UnitsUnwritable`."""
    found = []
    for unit in units:
        path = root / FOLDER.relative_to("/") / unit.name
        try:
            there = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            state = UnitFileState.NEW
        except OSError as error:
            raise _unwritable(path, error) from error
        else:
            state = UnitFileState.SAME if there == unit.text else UnitFileState.DIFFERENT
        found.append(UnitFile(str(path), state, unit.text))
    return tuple(found)


def write_files(files: tuple[UnitFile, ...], *, replace: bool) -> None:
    """Write those that are not there as they should be; others' changes only if told to `replace` them.

    Raises `UnitsDiffer`, with nothing written, and `UnitsUnwritable`.
    """
    different = [file.path for file in files if file.state is UnitFileState.DIFFERENT]
    if different and not replace:
        raise UnitsDiffer(
            f"{', '.join(different)} {'is' if len(different) == 1 else 'are'} there already, and different",
            remedy="See what would change with --dry-run, and replace with --yes; own settings belong into"
            " `systemctl edit`",
        )
    for file in files:
        if file.state is not UnitFileState.SAME:
            path = Path(file.path)
            unfinished = path.with_name(f"{path.name}.unfinished")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                unfinished.write_text(file.text, encoding="utf-8")
                unfinished.chmod(0o644)
                unfinished.replace(path)
            except OSError as error:
                raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UnitsUnwritable:
    return UnitsUnwritable(
        f"{path} can't be written: {error.strerror}", remedy="Run it as root, or name another folder with --root"
    )

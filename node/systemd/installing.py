"""Writes unit files: compares them with existing files, writes them, and reports the next steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from strandline.errors import ExitCode, Fatal
from strandline.node.output import Block
from strandline.node.systemd.units import FOLDER, Unit


class UnitFileState(StrEnum):
    """How a unit compares with the existing file."""

    NEW = "new"
    SAME = "unchanged"
    DIFFERENT = "replaced"


class UnitsDiffer(Fatal):
    """A unit file already exists with a different content."""

    exit_code = ExitCode.USAGE


class UnitsUnwritable(Fatal):
    """The units can't be written."""


@dataclass(frozen=True, slots=True)
class UnitFile:
    """A unit, the path of its file, and how it compares with the existing file."""

    path: str
    state: UnitFileState
    text: str


@dataclass(frozen=True, slots=True)
class UnitsReport:
    """The unit files that were written or would be written, and the next steps."""

    files: tuple[UnitFile, ...]
    written: bool
    next_steps: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def blocks(self) -> Iterator[Block]:
        """A line for each file, or the text of the units if they were not written."""
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
    """The units, compared with the existing files. Raises `UnitsUnwritable`."""
    found = []
    for unit in units:
        path = root / FOLDER.relative_to("/") / unit.name
        try:
            existing = path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            state = UnitFileState.NEW
        except OSError as error:
            raise _unwritable(path, error) from error
        else:
            state = UnitFileState.SAME if existing == unit.text else UnitFileState.DIFFERENT
        found.append(UnitFile(str(path), state, unit.text))
    return tuple(found)


def write_files(files: tuple[UnitFile, ...], *, replace: bool) -> None:
    """Write the files that don't exist or differ. Existing files that differ are overwritten only with `replace`.

    Raises `UnitsDiffer`, before anything is written, and `UnitsUnwritable`.
    """
    different = [file.path for file in files if file.state is UnitFileState.DIFFERENT]
    if different and not replace:
        raise UnitsDiffer(
            f"{', '.join(different)} already {'exists' if len(different) == 1 else 'exist'} with a different content",
            remedy="See what would change with --dry-run, and replace with --yes; make your own changes with"
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
        f"{path} can't be written: {error.strerror}", remedy="Run it as root, or choose another folder with --root"
    )

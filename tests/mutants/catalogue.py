"""The faults, as values, and what may be wrong with how they are written down."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
CHECKOUT = FOLDER.parents[1]

_FIELDS = {"breaks", "file", "before", "after", "tests", "simulation"}
_OPTIONAL = {"simulation"}


class BadMutant(Exception):  # noqa: N818 - it says what it is
    """A fault that can't be applied, or names a test that is not there."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that occurs once in a file, and what takes its place."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `breaks` says which rule it breaks; `tests` are files or node ids of pytest, one of which must fail.
    With a number of seeds in `simulation` the seeded simulation must find it as well.
    """

    name: str
    area: str
    breaks: str
    file: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    simulation: int = 0


def load_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """All faults of a folder, in the order of its files. Raises `BadMutant`."""
    found: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in found:
                raise BadMutant(f"{name} is in {found[name].area}.toml and in {path.name}")
            found[name] = _mutant(name, path.stem, fields)
    return list(found.values())


def mutated(mutant: Mutant, source: str) -> str:
    """The text of the file with the fault in it. Raises `BadMutant` where the fault does not fit the text."""
    for edit in mutant.edits:
        count = source.count(edit.before)
        if count != 1:
            raise BadMutant(f"{mutant.name}: {mutant.file} has this {count} times, and not once:\n{edit.before}")
        source = source.replace(edit.before, edit.after)
    return source


def problems(mutant: Mutant, checkout: Path = CHECKOUT) -> Iterator[str]:
    """What keeps a fault from being run."""
    source = checkout / mutant.file
    if "kernels" in source.parts:
        yield f"{mutant.name}: {mutant.file} is compiled, and compiled code that has inlined it would not change"
    if not source.is_file():
        yield f"{mutant.name}: there is no {mutant.file}"
        return
    try:
        mutated(mutant, source.read_text(encoding="utf-8"))
    except BadMutant as error:
        yield str(error)
    for test in mutant.tests:
        path, *names = test.split("::")
        if not (checkout / path).exists():
            yield f"{mutant.name}: there is no {path}"
        # A parametrised test has its parameters behind its name, and one of a class the class before it.
        elif names and f"{names[-1].partition('[')[0]}" not in (checkout / path).read_text(encoding="utf-8"):
            yield f"{mutant.name}: {path} has no {names[-1]}"


def _mutant(name: str, area: str, fields: dict[str, object]) -> Mutant:
    if fields.keys() - _FIELDS or _FIELDS - _OPTIONAL - fields.keys():
        raise BadMutant(f"{name}: it has {sorted(fields)}, and needs {sorted(_FIELDS)}")
    before, after = _texts(fields["before"]), _texts(fields["after"])
    if len(before) != len(after) or not before:
        raise BadMutant(f"{name}: it has {len(before)} texts before and {len(after)} after")
    edits = tuple(Edit(old, new) for old, new in zip(before, after, strict=True))
    if any(edit.before == edit.after for edit in edits):
        raise BadMutant(f"{name}: it changes nothing")
    tests, seeds = _texts(fields["tests"]), fields.get("simulation", 0)
    if not tests or not isinstance(seeds, int):
        raise BadMutant(f"{name}: it names no test, or no number of seeds")
    return Mutant(name, area, str(fields["breaks"]), str(fields["file"]), edits, tests, seeds)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)

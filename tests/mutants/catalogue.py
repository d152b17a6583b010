"""Reads and validates the faults."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
CHECKOUT = FOLDER.parents[1]

_FIELDS = {"breaks", "file", "before", "after", "tests", "simulation"}
_OPTIONAL = {"simulation"}


class InvalidMutant(Exception):  # noqa: N818 - the name is clear without the suffix
    """A fault that can't be applied, or names a missing test."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that occurs once in a file, and its replacement."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault. `breaks` is the rule that it breaks; `tests` are files or node ids of pytest, one of which must fail.
    With a number of seeds in `simulation`, the seeded simulation must find it, too.
    """

    name: str
    area: str
    breaks: str
    file: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    simulation: int = 0


def load_mutants(folder: Path = FOLDER) -> list[Mutant]:
    """All faults of a folder, in the order of its files. Raises `InvalidMutant`."""
    found: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.toml")):
        for name, fields in tomllib.loads(path.read_text(encoding="utf-8")).items():
            if name in found:
                raise InvalidMutant(f"{name} is in {found[name].area}.toml and in {path.name}")
            found[name] = _mutant(name, path.stem, fields)
    return list(found.values())


def mutated(mutant: Mutant, source: str) -> str:
    """The text of the file with the fault. Raises `InvalidMutant` if the fault can't be applied to the text."""
    for edit in mutant.edits:
        count = source.count(edit.before)
        if count != 1:
            raise InvalidMutant(f"{mutant.name}: {mutant.file} has this {count} times instead of once:\n{edit.before}")
        source = source.replace(edit.before, edit.after)
    return source


def problems(mutant: Mutant, checkout: Path = CHECKOUT) -> Iterator[str]:
    """The reasons why a fault can't be run."""
    source = checkout / mutant.file
    if "kernels" in source.parts:
        yield f"{mutant.name}: {mutant.file} is compiled, and compiled code that has inlined it would not change"
    if not source.is_file():
        yield f"{mutant.name}: {mutant.file} does not exist"
        return
    try:
        mutated(mutant, source.read_text(encoding="utf-8"))
    except InvalidMutant as error:
        yield str(error)
    for test in mutant.tests:
        path, *names = test.split("::")
        if not (checkout / path).exists():
            yield f"{mutant.name}: {path} does not exist"
        # A parametrised test has its parameters after its name, and a test of a class has the class before it.
        elif names and f"{names[-1].partition('[')[0]}" not in (checkout / path).read_text(encoding="utf-8"):
            yield f"{mutant.name}: {path} has no {names[-1]}"


def _mutant(name: str, area: str, fields: dict[str, object]) -> Mutant:
    if fields.keys() - _FIELDS or _FIELDS - _OPTIONAL - fields.keys():
        raise InvalidMutant(f"{name}: the fields are {sorted(fields)} instead of {sorted(_FIELDS)}")
    before, after = _texts(fields["before"]), _texts(fields["after"])
    if len(before) != len(after) or not before:
        raise InvalidMutant(f"{name}: there are {len(before)} texts in `before` and {len(after)} in `after`")
    edits = tuple(Edit(old, new) for old, new in zip(before, after, strict=True))
    if any(edit.before == edit.after for edit in edits):
        raise InvalidMutant(f"{name}: it changes nothing")
    tests, seeds = _texts(fields["tests"]), fields.get("simulation", 0)
    if not tests or not isinstance(seeds, int):
        raise InvalidMutant(f"{name}: `tests` is empty, or `simulation` is not an integer")
    return Mutant(name, area, str(fields["breaks"]), str(fields["file"]), edits, tests, seeds)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)

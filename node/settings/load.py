"""Loads the settings: chooses the file, applies the precedence of the sources, and reports all problems at once."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from strandline.node.masking import HIDDEN
from strandline.node.settings.problems import Located, Problem, SettingsError, located, problem
from strandline.node.settings.sections import Settings
from strandline.node.settings.sources import Origin, ReadValues, Values, misspelt_variables, read_environment, read_file

FILE_VARIABLE = "STRANDLINE_CONFIG"
DEFAULT_FILE = Path("/etc/strandline/strandline.toml")

_SYNTAX_PLACE = re.compile(r" \(at (?:line (?P<line>[0-9]+), column (?P<column>[0-9]+)|end of document)\)$")


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, the file that was read, if any, and the origin of every value that is not a default."""

    settings: Settings
    file: Path | None
    origins: Mapping[str, Origin]


def load_settings(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings: defaults, overridden by a file, overridden by the environment.

    The file is `path`, or the one that $STRANDLINE_CONFIG names, or /etc/strandline/strandline.toml if it exists. A
    variable STRANDLINE_<SECTION>__<NAME> sets one setting. A table of properties is written as JSON, and is merged with
    the file's. Raises `SettingsError` with all problems.
    """
    return load_with_origins(path, environ).settings


def load_with_origins(path: Path | None, environ: Mapping[str, str]) -> LoadedSettings:
    """The same, with the origin of each value."""
    file = _which_file(path, environ)
    from_file = _read(file, "--config" if path is not None else FILE_VARIABLE) if file is not None else Values({}, {})
    from_environment = read_environment(environ)
    origins = {**from_file.origins, **from_environment.origins}
    problems = list(_misspelt(environ))
    try:
        settings = Settings(ReadValues(from_environment), ReadValues(from_file))
    except ValidationError as error:
        found = list(located(error))
        found += _further_problems(found, from_environment, from_file)
        problems = [problem(each, origins) for each in found] + problems
    if problems:
        raise SettingsError(problems)
    return LoadedSettings(settings, file, origins)


def _which_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    if path is not None:
        return path
    if named := environ.get(FILE_VARIABLE):
        return Path(named)
    return DEFAULT_FILE if DEFAULT_FILE.exists() else None


def _read(file: Path, named_by: str) -> Values:
    """The file's values. If the file can't be parsed, that is the only problem that is reported."""
    remedy = "The path of a settings file, such as conf/strandline.toml"
    try:
        return read_file(file)
    except tomllib.TOMLDecodeError as error:
        place = _SYNTAX_PLACE.search(str(error))
        at = f" line {place['line']}, column {place['column']}" if place and place["line"] else ", at its end"
        what = f"is not TOML: {_SYNTAX_PLACE.sub('', str(error))}"
        remedy = 'Lines of `name = value` below `[section]`, with text in "quotes"'
        raise SettingsError([Problem(str(file), "", f"{file.name}{at}", what, remedy)]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        what = "is not UTF-8 text"
        raise SettingsError([Problem(str(file), "", f"{file.name} line {line}", what, "Save it as UTF-8")]) from None
    except OSError as error:
        what = f"can't be read: {error.strerror}"
        raise SettingsError([Problem(named_by, str(file), named_by, what, remedy)]) from None


def _further_problems(found: Sequence[Located], *sources: Values) -> Iterator[Located]:
    """Further problems, found by validating again without the wrong values. Settings are checked together only if each
    is valid by itself, so without this, one wrong value would hide other problems in its section.
    """
    removed = {each.path[:2] for each in found}
    known = {(each.path, each.finding.what) for each in found}
    try:
        Settings(*(ReadValues(_without(removed, source)) for source in sources))
    except ValidationError as error:
        for each in located(error):
            # A removed value has been replaced by its default, which is not worth reporting.
            if (each.path, each.finding.what) not in known and not each.touches(removed):
                yield each


def _without(removed: Set[tuple[str, ...]], values: Values) -> Values:
    kept: dict[str, Any] = {}
    for section, names in values.sections.items():
        if (section,) not in removed:
            kept[section] = {name: value for name, value in names.items() if (section, name) not in removed}
    return Values(kept, values.origins)


def _misspelt(environ: Mapping[str, str]) -> Iterator[Problem]:
    for variable, right in misspelt_variables(environ).items():
        where, what = f"environment variable {variable}", "has only one underscore after the section"
        yield Problem(variable, HIDDEN, where, what, f'Did you mean "{right}"?')

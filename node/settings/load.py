"""Loading: which file, what wins, and every problem at once."""

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
from strandline.node.settings.sources import Origin, ReadValues, Values, near_misses, read_environment, read_file

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

    The file is `path`, or else the one that $STRANDLINE_CONFIG names, or else /etc/strandline/strandline.toml if it
    exists. A variable STRANDLINE_<SECTION>__<NAME> sets one setting; a table of properties is given as JSON and adds to
    the file's. Raises `SettingsError` with all that is wrong.
    """
    return load_with_origins(path, environ).settings


def load_with_origins(path: Path | None, environ: Mapping[str, str]) -> LoadedSettings:
    """The same, with where each value comes from."""
    file = _which_file(path, environ)
    from_file = _read(file, "--config" if path is not None else FILE_VARIABLE) if file is not None else Values({}, {})
    from_environment = read_environment(environ)
    origins = {**from_file.origins, **from_environment.origins}
    problems = list(_misnamed(environ))
    try:
        settings = Settings(ReadValues(from_environment), ReadValues(from_file))
    except ValidationError as error:
        found = list(located(error))
        found += _looking_again(found, from_environment, from_file)
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
    """The file's values. Of a file that can't be understood nothing else can be said, so that is the only problem."""
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


def _looking_again(found: Sequence[Located], *sources: Values) -> Iterator[Located]:
    """What else comes to light once the wrong values are set aside. Settings are checked together only where each is
    right by itself; without this, one slip of the pen would hide the rest of its section.
    """
    aside = {each.path[:2] for each in found}
    known = {(each.path, each.finding.what) for each in found}
    try:
        Settings(*(ReadValues(_without(aside, source)) for source in sources))
    except ValidationError as error:
        for each in located(error):
            # Where a value was set aside its default stands now, of which nobody asked.
            if (each.path, each.finding.what) not in known and not each.touches(aside):
                yield each


def _without(aside: Set[tuple[str, ...]], values: Values) -> Values:
    kept: dict[str, Any] = {}
    for section, names in values.sections.items():
        if (section,) not in aside:
            kept[section] = {name: value for name, value in names.items() if (section, name) not in aside}
    return Values(kept, values.origins)


def _misnamed(environ: Mapping[str, str]) -> Iterator[Problem]:
    for variable, right in near_misses(environ).items():
        where, what = f"environment variable {variable}", "has one underscore behind the section"
        yield Problem(variable, HIDDEN, where, what, f'Did you mean "{right}"?')

"""The sources of settings: a TOML file and the environment. Values are read with their origins.

Values are not validated here, but converted to a common form: tables of properties are flattened, paths get the folder
that they are relative to, and the JSON of an environment variable is parsed.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_origin

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

from strandline.node.settings.files import PathSetting, WrittenPath
from strandline.node.settings.location import key_lines
from strandline.node.settings.properties import flattened
from strandline.node.settings.section import Section
from strandline.node.settings.sections import Settings

PREFIX = "STRANDLINE_"
NOT_SETTINGS = ("STRANDLINE_CONFIG", "STRANDLINE_INSTALLATION", "STRANDLINE_CACHE")


@dataclass(frozen=True, slots=True)
class Origin:
    """The place where a value was written, and the value as written there."""

    kind: Literal["file", "environment"]
    where: str
    written: object


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one source by section and name, and the origin of each by its dotted name."""

    sections: dict[str, Any]
    origins: dict[str, Origin]


class ReadValues(PydanticBaseSettingsSource):
    """Values that have been read, as a source for pydantic-settings."""

    def __init__(self, values: Values) -> None:
        super().__init__(Settings)
        self._values = values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of one section. pydantic-settings calls this only from a default `__call__`."""
        del field
        return self._values.sections.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """All sections."""
        return self._values.sections


def section_models() -> dict[str, type[Section]]:
    """The model of each section, by name."""
    return {name: type(field.default) for name, field in Settings.model_fields.items()}


def read_file(path: Path) -> Values:
    """The values of a settings file. Raises `OSError`, `UnicodeDecodeError` or `tomllib.TOMLDecodeError`."""
    text = path.read_bytes().decode()
    document = tomllib.loads(text)
    lines = key_lines(text)
    values = Values({}, {})
    for section, names in document.items():
        values.origins[section] = Origin("file", f"{path.name} line {lines[section]}", names)
        if not isinstance(names, dict):
            values.sections[section] = names
            continue
        values.sections[section] = {}
        for name, written in names.items():
            shaped = _shaped(section, name, written, path.parent.absolute())
            values.sections[section][name] = shaped
            for dotted, item in _parts(f"{section}.{name}", shaped, written):
                values.origins[dotted] = Origin("file", f"{path.name} line {lines[dotted]}", item)
    return values


def read_environment(environ: Mapping[str, str]) -> Values:
    """All variables of the form STRANDLINE_<SECTION>__<NAME>, including those without such a setting."""
    values = Values({}, {})
    for variable in sorted(environ):
        if variable in NOT_SETTINGS or not variable.startswith(PREFIX) or "__" not in variable:
            continue
        section, name = variable.removeprefix(PREFIX).lower().split("__", 1)
        written = environ[variable]
        shaped = _shaped(section, name, _unpacked(section, name, written), Path.cwd())
        values.sections.setdefault(section, {})[name] = shaped
        for dotted, item in _parts(f"{section}.{name}", shaped, written):
            values.origins[dotted] = Origin("environment", f"environment variable {variable}", item)
        values.origins.setdefault(section, Origin("environment", f"environment variable {variable}", None))
    return values


def misspelt_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that have one underscore after the section instead of two, with their correct names."""
    found = {}
    for variable in sorted(set(environ) - set(NOT_SETTINGS)):
        for section, model in section_models().items():
            beginning = f"{PREFIX}{section.upper()}_"
            name = variable.removeprefix(beginning)
            if variable.startswith(beginning) and name.lower() in model.model_fields:
                found[variable] = f"{beginning}_{name}"
    return found


def _field(section: str, name: str) -> FieldInfo | None:
    model = section_models().get(section)
    return model.model_fields.get(name) if model is not None else None


def is_table(section: str, name: str) -> bool:
    """Whether the setting is a table of properties."""
    field = _field(section, name)
    return field is not None and get_origin(field.annotation) is dict


def _shaped(section: str, name: str, written: object, folder: Path) -> object:
    field = _field(section, name)
    if isinstance(written, dict) and is_table(section, name):
        return flattened(written)
    if isinstance(written, str) and field is not None and any(isinstance(m, PathSetting) for m in field.metadata):
        return WrittenPath(written, folder)
    return written


def _unpacked(section: str, name: str, written: str) -> object:
    """Parse the JSON of a table. Other values are returned unchanged."""
    if not is_table(section, name):
        return written
    try:
        return json.loads(written)
    except ValueError:
        # The validator of the table reports it, without showing the text, which may contain a secret.
        return written


def _parts(dotted: str, shaped: object, written: object) -> Iterator[tuple[str, object]]:
    """A setting and, if it is a table of properties, each property."""
    yield dotted, written
    if isinstance(shaped, dict):
        yield from ((f"{dotted}.{name}", item) for name, item in shaped.items())

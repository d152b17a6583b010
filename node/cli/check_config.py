"""`strandline check-config`: validate the settings and show their effective values."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import click

from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.options import Command, help_with
from strandline.node.output import Block, Table
from strandline.node.settings import LoadedSettings


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """The effective value of a setting, and whether it comes from the defaults, the file or the environment."""

    setting: str
    value: object
    origin: Literal["default", "file", "environment"]
    where: str


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """All settings. They contain no secrets, only the names of files with secrets."""

    file: str | None
    settings: tuple[EffectiveSetting, ...]

    def blocks(self) -> Iterator[Block]:
        """The file, and a table with one row per setting."""
        yield f"The settings are valid ({self.file or 'no settings file'})."
        yield ""
        yield Table(
            ("setting", "value", "from"), tuple((each.setting, _text(each.value), each.where) for each in self.settings)
        )


def effective(loaded: LoadedSettings) -> EffectiveSettings:
    """The effective settings. A setting that is a TOML table becomes one entry per key."""
    found = []
    for section, names in loaded.settings.model_dump(mode="json").items():
        for name, value in names.items():
            properties = {f"{name}.{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {}
            found += [
                _effective(f"{section}.{key}", item, loaded) for key, item in (properties or {name: value}).items()
            ]
    return EffectiveSettings(str(loaded.file) if loaded.file is not None else None, tuple(found))


def _effective(setting: str, value: object, loaded: LoadedSettings) -> EffectiveSetting:
    origin = loaded.origins.get(setting)
    if origin is None:
        return EffectiveSetting(setting, value, "default", "default")
    return EffectiveSetting(setting, value, origin.kind, origin.where)


def _text(value: object) -> str:
    match value:
        case "" | [] | dict():
            # Tables that are not empty are shown key by key.
            return "(none)"
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(str(item) for item in value)
        case _:
            return str(value)


@click.command(
    "check-config",
    cls=Command,
    help=help_with(
        "Check the settings and show where each one comes from. If there are errors, all of them are listed, each with"
        " its place and with what is valid there, and the exit code is 2.",
        "strandline check-config --config conf/strandline.toml",
        "STRANDLINE_LOG__LEVEL=debug strandline check-config --output json",
    ),
)
@pass_context
def command(context: Context) -> None:
    """Load the settings as every command does. Raises `SettingsError` for invalid ones, as every command does."""
    context.output.result(effective(context.loaded))

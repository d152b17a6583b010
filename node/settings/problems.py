"""The problems in the settings, as one error with the place and the remedy of each."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from strandline.errors import ExitCode, Fatal
from strandline.node.masking import HIDDEN
from strandline.node.output import Block, Table
from strandline.node.settings.findings import ERROR_TYPE, Finding, names_secret, suggestion
from strandline.node.settings.sources import Origin, section_models

_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """One wrong value. `value_shown` is empty if there is no value, and never contains a secret."""

    setting: str
    value_shown: str
    where: str
    what: str
    remedy: str


class SettingsError(Fatal):
    """The settings can't be used. It has all problems, not only the first one."""

    exit_code = ExitCode.USAGE

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 setting is" if len(self.problems) == 1 else f"{len(self.problems)} settings are"
        super().__init__(f"{count} wrong", remedy="Nothing has been done")

    def __str__(self) -> str:
        lines = (f"{p.setting} ({p.where}) {p.what}. {p.remedy}" for p in self.problems)
        return f"{self.message}: " + "; ".join(lines)

    def blocks(self) -> Iterator[Block]:
        """A table with a row for each problem."""
        columns = ("setting", "value", "where", "what is wrong", "what would be right")
        rows = tuple((p.setting, p.value_shown, p.where, p.what, p.remedy) for p in self.problems)
        yield ""
        yield Table(columns, rows)

    def details(self) -> Mapping[str, object]:
        """The problems as JSON."""
        return {"problems": self.problems}


@dataclass(frozen=True, slots=True)
class Located:
    """A finding with the full path of the setting that it is about."""

    path: tuple[str, ...]
    finding: Finding

    @property
    def section(self) -> str:
        return self.path[0]

    @property
    def setting(self) -> str:
        return ".".join(self.path)

    @property
    def causes(self) -> tuple[str, ...]:
        """The other settings with which it conflicts."""
        return tuple(name if "." in name else f"{self.section}.{name}" for name in self.finding.because)

    def touches(self, paths: Iterable[tuple[str, ...]]) -> bool:
        """Whether it is about one of these settings, or conflicts with one of them."""
        about = {".".join(self.path[:2]), *self.causes}
        return any(".".join(path[:2]) in about for path in paths)


def located(error: ValidationError) -> Iterator[Located]:
    """The findings in a validation error, each with the path of its setting."""
    for details in error.errors(include_url=False):
        path = tuple(str(part) for part in details["loc"])
        for finding in _findings(path, details):
            yield Located(path + finding.at, finding)


def _findings(path: tuple[str, ...], details: ErrorDetails) -> Iterable[Finding]:
    match details["type"]:
        case kind if kind == ERROR_TYPE:
            carried: tuple[Finding, ...] = details["ctx"]["findings"]
            return carried
        case "extra_forbidden":
            return [_unknown(path)]
        case "model_type" | "dict_type":
            return [Finding("is not a table", f"Write [{path[0]}] and the settings below it", hidden=True)]
        case _:
            return [Finding(details["msg"], "See conf/strandline.toml", hidden=True)]


def _unknown(path: tuple[str, ...]) -> Finding:
    """The finding for an unknown name. Its value is never shown: it may be a secret with a misspelt name."""
    sections = section_models()
    if len(path) == 1:
        known = list(sections)
        return Finding("is not a section", suggestion(path[0], known) or f"One of {', '.join(known)}", hidden=True)
    section, name = path[:2]
    known = list(sections[section].model_fields)
    elsewhere = [f'Did you mean "{other}.{name}"?' for other, model in sections.items() if name in model.model_fields]
    near = suggestion(name, known) or "".join(elsewhere[:1])
    return Finding("is not a setting", near or f"One of {', '.join(known)}", hidden=True)


def problem(found: Located, origins: Mapping[str, Origin]) -> Problem:
    """A finding with its value, if that may be shown, and its place in the file or the environment."""
    own = origins.get(found.setting)
    causes = (origins[cause] for cause in found.causes if cause in origins)
    placed = own or next(causes, None) or origins.get(found.section)
    return Problem(
        setting=found.setting,
        value_shown=_shown(found, own),
        where=placed.where if placed is not None else "defaults",
        what=found.finding.what,
        remedy=found.finding.remedy,
    )


def _shown(found: Located, own: Origin | None) -> str:
    if own is None:
        return ""
    if found.finding.hidden or names_secret(found.path[-1]):
        return HIDDEN
    text = json.dumps(own.written, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."

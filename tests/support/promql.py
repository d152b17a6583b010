"""Checks of PromQL expressions by their text, and of alert rules, with as much YAML as ours use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strandline.node.metrics.catalogue import CATALOGUE
from strandline.node.metrics.metric import Kind

_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})
_CLAUSE = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)")
_BARE_CLAUSE = re.compile(r"\b(by|without|on|ignoring|group_left|group_right)\b")


def metric_names(expression: str) -> set[str]:
    """The metrics that an expression selects."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    bare = _BARE_CLAUSE.sub("", _CLAUSE.sub("", bare))
    bare = re.sub(r"\$\w+", "", bare)
    found = re.finditer(r"(?<![\w.])([a-zA-Z_:][\w:]*)(\s*\()?", bare)
    return {match[1] for match in found if match[2] is None and match[1].lower() not in _WORDS}


def exposed() -> set[str]:
    """The names of all series of the catalogue's metrics."""
    suffixes = {Kind.HISTOGRAM: ("_bucket", "_count", "_sum")}
    return {metric.name + suffix for metric in CATALOGUE for suffix in suffixes.get(metric.kind, ("",))}


def labels_matched(expression: str) -> Iterator[tuple[str, str]]:
    """Metric and label of each matcher."""
    for name, matchers in re.findall(r"(strandline_\w+)\{([^}]*)\}", expression):
        for label in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', matchers):
            yield name, label


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One alert of the file."""

    name: str
    expression: str
    held_for: str
    severity: str
    summary: str
    description: str
    runbook: str


def alert_rules(path: Path) -> tuple[AlertRule, ...]:
    """The alerts of a file that is formatted like ours."""
    _, *parts = re.split(r"^ +- alert: ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return tuple(map(_rule, parts))


def _rule(part: str) -> AlertRule:
    block = re.search(r"^ +expr: \|\n((?: {10,}.*\n)+)", part, flags=re.MULTILINE)
    return AlertRule(
        name=part.splitlines()[0].strip(),
        expression=block[1] if block is not None else _field(part, "expr"),
        held_for=_field(part, "for"),
        severity=_field(part, "severity"),
        summary=_field(part, "summary"),
        description=_field(part, "description"),
        runbook=_field(part, "runbook"),
    )


def _field(part: str, name: str) -> str:
    found = re.search(rf"^ +{name}: (.*)$", part, flags=re.MULTILINE)
    assert found is not None, f"{name} is missing in {part}"
    return found[1].strip().strip('"')

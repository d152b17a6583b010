"""Labels as text: the way PromQL writes them, and nothing in it that a terminal would obey.

Values come from whoever may write samples. A character that is not printable (a control character, one that turns the
direction of writing, a lone surrogate) is always shown by its escape.
"""

import re
from collections.abc import Mapping

METRIC_NAME = "__name__"

_PLAIN_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_PLAIN_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# What PromQL reads as something else where a metric's name could stand.
_NO_METRIC_NAMES = frozenset({"atan2", "bool", "group_left", "group_right", "ignoring", "inf", "nan", "on"})
_ESCAPES = {
    "\\": "\\\\",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def selector_of(labels: Mapping[str, str]) -> str:
    """A label set as the selector that matches it: `up{job="a"}`; names that are not plain stand in quotes."""
    metric = labels.get(METRIC_NAME, "")
    rest = sorted((name, value) for name, value in labels.items() if name != METRIC_NAME)
    inside = [f"{_label(name)}={quoted(value)}" for name, value in rest]
    if not metric or _is_plain_metric(metric):
        return metric + (f"{{{', '.join(inside)}}}" if inside or not metric else "")
    return f"{{{', '.join([quoted(metric), *inside])}}}"


def quoted(text: str) -> str:
    """A string in quotes, with Go's escapes, as PromQL reads it."""
    return '"' + "".join(_ESCAPES.get(character) or _visible(character) for character in text) + '"'


def list_item(text: str) -> str:
    """A name or a value that stands on a line of its own: as it is if that is clear, else in quotes with escapes. So
    what begins with a quote is always in quotes.
    """
    is_clear = text.isprintable() and text != "" and text == text.strip() and not text.startswith('"')
    return text if is_clear else quoted(text)


def single_line(text: str) -> str:
    """Prose that somebody else wrote, such as a node's error: on one line, with escapes for what is not printable."""
    return "".join(_visible(character) for character in " ".join(text.split()))


def printable(text: str) -> str:
    """As it is, with escapes for what is not printable."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _label(name: str) -> str:
    return name if _PLAIN_LABEL.fullmatch(name) else quoted(name)


def _is_plain_metric(name: str) -> bool:
    return _PLAIN_METRIC.fullmatch(name) is not None and name.lower() not in _NO_METRIC_NAMES


def _visible(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"

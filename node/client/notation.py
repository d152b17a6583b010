"""Labels as text in PromQL's notation, without terminal control characters.

Any sender of samples can choose the values. Unprintable characters (control characters, characters that change the
writing direction, lone surrogates) are always escaped.
"""

import re
from collections.abc import Mapping

METRIC_NAME = "__name__"

_PLAIN_METRIC = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*", re.ASCII)
_PLAIN_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# Words that PromQL reads as keywords or numbers instead of a metric's name.
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
    """A label set as the selector that matches it: `up{job="a"}`. Names that need quotes are quoted."""
    metric = labels.get(METRIC_NAME, "")
    rest = sorted((name, value) for name, value in labels.items() if name != METRIC_NAME)
    inside = [f"{_label(name)}={quoted(value)}" for name, value in rest]
    if not metric or _is_plain_metric(metric):
        return metric + (f"{{{', '.join(inside)}}}" if inside or not metric else "")
    return f"{{{', '.join([quoted(metric), *inside])}}}"


def quoted(text: str) -> str:
    """A PromQL string literal, with Go's escapes."""
    return '"' + "".join(_ESCAPES.get(character) or _visible(character) for character in text) + '"'


def list_item(text: str) -> str:
    """A name or value on a line of its own: unchanged if it is unambiguous, else quoted and escaped. A text with a
    leading quote is therefore always quoted.
    """
    is_unambiguous = text.isprintable() and text != "" and text == text.strip() and not text.startswith('"')
    return text if is_unambiguous else quoted(text)


def single_line(text: str) -> str:
    """Text of another program, such as a node's error: on one line, with unprintable characters escaped."""
    return "".join(_visible(character) for character in " ".join(text.split()))


def printable(text: str) -> str:
    """The text with unprintable characters escaped."""
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

"""Message templates: compiled functions from a series to a message. Pure.

A string of a template may contain fields in braces: `{instance}` is a label, `{$value}`, `{$time}`, `{$start}` and
`{$end}` are numbers of the series, `{$labels}` is all labels, and `{{` and `}}` are braces. In a JSON message, a string
that is exactly one field is replaced by the value of the field: a number, or an object for `{$labels}`. Everything else
is text.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from strandline.errors import ExitCode, Fatal
from strandline.jobs.sending.series import SentSeries
from strandline.wire.record_headers import RecordHeaders

_KEYS: Final = ("key", "format", "value", "headers", "defaults", "times")
_FORMATS: Final = ("json", "text")
_TIMES: Final = ("ms", "rfc3339")
_NUMBERS: Final = ("$value", "$time", "$start", "$end")
_RESERVED_HEADERS: Final = "strandline-"
_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DOCS = "docs/pipeline.md shows what a template looks like"
_MAX_DEPTH = 20


class TemplateUnusable(Fatal):
    """The template is invalid."""

    exit_code = ExitCode.USAGE


class NotRendered(Exception):  # noqa: N818 - not an error: the series counts as a bad record
    """A series has no value for a field of the template, and the template has no default for it."""


@dataclass(frozen=True, slots=True)
class Message:
    """The message of a series, partitioned by its key."""

    key: bytes | None
    value: bytes
    headers: RecordHeaders
    partition: int = -1


Renderer = Callable[[SentSeries], Any]
"""Returns the value of a part of the message for a series."""


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    """A valid template. `fields` are the names of the fields that it uses."""

    fields: frozenset[str]
    _key: Renderer | None
    _value: Renderer
    _headers: tuple[tuple[str, Renderer], ...]
    _is_json: bool

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "MessageTemplate":
        """Compile the content of a template file. Raises `TemplateUnusable`."""
        if unknown := sorted(set(table) - set(_KEYS)):
            raise _unusable(f"it has the unknown key {unknown[0]!r}", f"Known keys are {', '.join(_KEYS)}")
        if "value" not in table:
            raise _unusable("it has no value", _DOCS)
        form, times = table.get("format", "json"), table.get("times", "ms")
        if form not in _FORMATS or times not in _TIMES:
            raise _unusable(f"format = {form!r}, times = {times!r}", "format is json or text, times are ms or rfc3339")
        defaults, headers = _string_table(table, "defaults"), _string_table(table, "headers")
        used: set[str] = set()
        compiler = _StringCompiler(defaults, used, is_rfc3339=times == "rfc3339")
        key = table.get("key")
        if key is not None and not isinstance(key, str):
            raise _unusable(f"key = {key!r} must be a string", _DOCS)
        is_json = form == "json"
        if not is_json and not isinstance(table["value"], str):
            raise _unusable(
                'its value must be a string, because its format is "text"', 'Use a string, or format = "json"'
            )
        value = _structure(table["value"], compiler, 0) if is_json else compiler.text(table["value"])
        for name in headers:
            if name.startswith(_RESERVED_HEADERS):
                raise _unusable(f"the header {name!r} begins with {_RESERVED_HEADERS}", "Choose another name")
        made = cls(
            frozenset(used),
            compiler.text(key) if key is not None else None,
            value,
            tuple((name, compiler.text(text)) for name, text in headers.items()),
            is_json,
        )
        if unused := sorted(set(defaults) - used):
            raise _unusable(f"it has a default for {unused[0]!r}, which it does not use", "Remove the default")
        return made

    @property
    def needs_newest(self) -> bool:
        """Whether it uses the newest sample."""
        return bool(self.fields & {"$value", "$time"})

    def render(self, series: SentSeries) -> Message:
        """The message of a series. Raises `NotRendered`."""
        value = self._value(series)
        return Message(
            str(self._key(series)).encode() if self._key is not None else None,
            orjson.dumps(value) if self._is_json else str(value).encode(),
            [(name, str(text(series)).encode()) for name, text in self._headers],
        )


@dataclass(frozen=True, slots=True)
class _StringCompiler:
    """Compiles the strings of a template, and collects the fields that they use."""

    defaults: Mapping[str, str]
    used: set[str]
    is_rfc3339: bool

    def text(self, written: str) -> Renderer:
        """Compile a string to text."""
        parts = [part if isinstance(part, str) else self._as_text(part.name) for part in self._parts(written)]
        if all(isinstance(part, str) for part in parts):
            constant = "".join(part for part in parts if isinstance(part, str))
            return lambda _series: constant
        return lambda series: "".join(part if isinstance(part, str) else part(series) for part in parts)

    def leaf(self, written: str) -> Renderer:
        """Compile a string of a JSON message: to its field's value if it is exactly one field, otherwise to text."""
        match list(self._parts(written)):
            case [_Field("$labels")]:
                return lambda series: dict(sorted(series.labels.items()))
            case [_Field("$value")]:
                return self._or_default("$value", lambda series: series.value, _json_number)
            case [_Field(name)] if name in _NUMBERS:
                return self._or_default(name, _number_of(name), self._moment)
        return self.text(written)

    def _parts(self, written: str) -> Iterator["str | _Field"]:
        at = 0
        for found in _TOKEN.finditer(written):
            if found.start() > at:
                yield written[at : found.start()]
            at = found.end()
            token = found.group()
            if token in ("{{", "}}"):
                yield token[0]
                continue
            name = found.group(1)
            if not name or (name.startswith("$") and name not in (*_NUMBERS, "$labels")):
                raise _unusable(
                    f"{written!r} has {token!r}, which is not a field",
                    "Fields are {label}, {$value}, {$time}, {$start}, {$end} and {$labels}; a brace is {{ or }}",
                )
            self.used.add(name)
            yield _Field(name)
        if at < len(written):
            yield written[at:]

    def _as_text(self, name: str) -> Renderer:
        if name == "$labels":
            return lambda series: series.text
        if name == "$value":
            return self._or_default(name, lambda series: series.value, _number_text)
        if name in _NUMBERS:
            return self._or_default(name, _number_of(name), lambda time: str(self._moment(time)))
        return self._or_default(name, lambda series: series.labels.get(name) or None, str)

    def _or_default(self, name: str, get: Callable[[SentSeries], Any], shown: Callable[[Any], Any]) -> Renderer:
        default = self.defaults.get(name)

        def render(series: SentSeries) -> Any:
            found = get(series)
            if found is not None:
                return shown(found)
            if default is None:
                what = f"no label {name}" if not name.startswith("$") else "no sample at that time"
                raise NotRendered(f"it has {what}, and the template has no default for {name}")
            return default

        return render

    def _moment(self, time: int) -> int | str:
        if not self.is_rfc3339:
            return time
        shown = _EPOCH + timedelta(milliseconds=time)
        return shown.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class _Field:
    name: str


def _structure(value: Any, compiler: _StringCompiler, depth: int) -> Renderer:
    """Compile a value of a JSON message: tables, lists and strings. Numbers and booleans are constants."""
    if depth > _MAX_DEPTH:
        raise _unusable(f"its value has more than {_MAX_DEPTH} levels of nesting", _DOCS)
    match value:
        case str():
            return compiler.leaf(value)
        case dict():
            members = [(name, _structure(one, compiler, depth + 1)) for name, one in value.items()]
            return lambda series: {name: one(series) for name, one in members}
        case list():
            items = [_structure(one, compiler, depth + 1) for one in value]
            return lambda series: [one(series) for one in items]
        case bool() | int() | float() if not isinstance(value, int) or abs(value) < 1 << 53:
            return lambda _series: value
        case _:
            raise _unusable(f"its value has {value!r}, which JSON can't represent exactly", "Write it as a string")


def _number_of(name: str) -> Callable[[SentSeries], int | None]:
    match name:
        case "$start":
            return lambda series: series.start
        case "$end":
            return lambda series: series.end
        case _:
            return lambda series: series.time


def _json_number(value: float) -> float | str:
    """The value for JSON, with NaN and infinities as strings, as in the API of Prometheus."""
    return value if math.isfinite(value) else _number_text(value)


def _number_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def _string_table(table: Mapping[str, Any], name: str) -> Mapping[str, str]:
    found = table.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise _unusable(f"{name} must be a table of strings", _DOCS)
    return found


def _unusable(what: str, remedy: str) -> TemplateUnusable:
    return TemplateUnusable(f"the template is invalid: {what}", remedy=remedy)

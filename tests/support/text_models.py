"""Simple readers of the text formats: line by line, with regular expressions and Python's own modules."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

from strandline.jobs.formats.csv_options import CsvOptions
from strandline.jobs.formats.kernels.decimals import NORMAL_NAN
from strandline.jobs.formats.time_formats import SHIFTS, UnixTime
from strandline.wire.decode import Limits
from strandline.wire.kernels.labels import Verdict
from support.damaged_texts import lines_of
from support.decoding import judge
from support.sample_blocks import FlatSample, RawLabels, bits

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
SPECIAL = rb"[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)"
NAN_BITS = int(NORMAL_NAN).to_bytes(8, "little")


@dataclass
class Expected:
    """The expected result for an input."""

    samples: list[FlatSample] = field(default_factory=list)
    records: int = 0
    bad: list[int] = field(default_factory=list)
    """The offset of each bad record."""
    nulls: int = 0


class BadRecordError(Exception):
    """The record can't be used."""


def require(condition: object) -> None:
    if not condition:
        raise BadRecordError


def number(text: bytes) -> bytes:
    """The bits of a number as a double."""
    if re.fullmatch(SPECIAL, text):
        return NAN_BITS if text.lstrip(b"+-")[:1].lower() == b"n" else bits(float(text))
    require(re.fullmatch(NUMBER, text))
    return bits(float(text))


def millis(text: bytes, shift: int) -> int:
    require(re.fullmatch(NUMBER, text))
    exact = Decimal(text.decode())
    # Beyond these, no digit of the result depends on the rest.
    size = exact.adjusted() + shift
    if not exact or size < -1:
        return 0
    require(size < 30)
    cut = int(Fraction(exact) * Fraction(10) ** shift)
    require(abs(cut) < 1 << 63)
    return cut


def labels(found: list[tuple[bytes, bytes]], limits: Limits, *, metric: bool = True) -> RawLabels:
    require(judge(found, limits) is Verdict.CANONICAL)
    kept = tuple(sorted((name, value) for name, value in found if value))
    require(not metric or b"__name__" in dict(kept))
    return kept


def records(data: bytes, offset: int, blank: bytes) -> Iterator[tuple[int, bytes]]:
    """The non-blank lines, each with its offset and without its end."""
    for line in lines_of(data):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if text.strip(blank):
            yield offset, text
        offset += len(line)


def read_csv(data: bytes, offset: int, options: CsvOptions, limits: Limits) -> Expected:
    """Rows of one line each, with times in a unit."""
    expected = Expected()
    for line in lines_of(data):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        if text:
            expected.records += 1
            try:
                expected.samples += _row(text, options, limits)
            except BadRecordError:
                expected.bad.append(offset)
        offset += len(line)
    return expected


def _row(text: bytes, options: CsvOptions, limits: Limits) -> list[FlatSample]:
    # The csv module treats a carriage return as the end of a row.
    row_text = text.decode("latin-1").replace("\r", "\ue000")
    try:
        rows = list(csv.reader([row_text], delimiter=options.delimiter, quotechar=options.quote, strict=True))
    except csv.Error as error:
        raise BadRecordError from error
    fields = [part.replace("\ue000", "\r").encode("latin-1") for part in rows[0]]
    require(len(fields) == options.columns)
    assert isinstance(options.time, UnixTime)
    time = millis(fields[options.time_column], SHIFTS[options.time.unit])
    shared = [(name.encode(), fields[column]) for name, column in options.labels]
    shared += [(name.encode(), value.encode()) for name, value in options.constants]
    samples = []
    for value in options.values:
        if fields[value.column]:
            metric = fields[value.metric] if isinstance(value.metric, int) else value.metric.encode()
            # Labels in the order of their names, in which limits are applied to them.
            found = labels(sorted([(b"__name__", metric), *shared]), limits)
            samples.append((found, time, number(fields[value.column])))
    require(samples)
    return samples


_BRACES = rb'\{(?:[^"}]|"(?:\\.|[^"\\])*")*\}'
_LINE = re.compile(
    rb"(?P<name>[^ \t{]*)(?P<braces>" + _BRACES + rb")?[ \t]+(?P<value>[^ \t]+)[ \t]+(?P<time>[^ \t]+)"
    rb"(?:[ \t]*|[ \t]+#[ \t]*" + _BRACES + rb"[ \t]+(?:" + NUMBER + rb"|" + SPECIAL + rb")"
    rb"(?:[ \t]+(?P<exemplar_time>" + NUMBER + rb"))?[ \t]*)",
    re.DOTALL,
)
_LABEL = re.compile(
    rb'[ \t]*(?:(?P<bare>[a-zA-Z_][a-zA-Z0-9_]*)|"(?P<quoted>(?:\\.|[^"\\])*)")[ \t]*'
    rb'(?:(?P<equals>=)[ \t]*"(?P<value>(?:\\.|[^"\\])*)"[ \t]*)?(?P<comma>,|$)',
    re.DOTALL,
)


def read_openmetrics(data: bytes, offset: int, limits: Limits) -> Expected:
    expected = Expected()
    ended = False
    for start, text in records(data, offset, b" \t"):
        if text.startswith(b"#") and not ended:
            ended = text == b"# EOF"
            continue
        expected.records += 1
        try:
            require(not ended)
            expected.samples.append(_line(text, limits))
        except BadRecordError:
            expected.bad.append(start)
    return expected


def _line(text: bytes, limits: Limits) -> FlatSample:
    found = _LINE.fullmatch(text)
    require(found)
    assert found
    value = number(found["value"])
    time = millis(found["time"], 3)
    if found["exemplar_time"]:
        millis(found["exemplar_time"], 3)
    pairs = []
    if found["name"]:
        require(re.fullmatch(rb"[a-zA-Z_:][a-zA-Z0-9_:]*", found["name"]))
        pairs.append((b"__name__", found["name"]))
    named = bool(found["name"])
    inner = (found["braces"] or b"{}")[1:-1].strip(b" \t")
    while inner:
        label = _LABEL.match(inner)
        require(label)
        assert label
        inner = inner[label.end() :].strip(b" \t")
        if label["equals"]:
            name = label["bare"] if label["bare"] is not None else _unescaped(label["quoted"])
            pairs.append((name, _unescaped(label["value"])))
        else:
            require(label["quoted"] and not named)
            named = True
            pairs.append((b"__name__", _unescaped(label["quoted"])))
    require(named)
    return labels(pairs, limits), time, value


def _unescaped(text: bytes) -> bytes:
    replacements = {b'\\"': b'"', b"\\\\": b"\\", b"\\n": b"\n"}
    return re.sub(rb"\\.", lambda match: replacements.get(match[0], match[0]), text, flags=re.DOTALL)


class _Number(str):
    __slots__ = ()


def read_json_lines(data: bytes, offset: int, limits: Limits) -> Expected:
    expected = Expected()
    for start, text in records(data, offset, b" \t\r"):
        expected.records += 1
        try:
            samples, nulls = _object(text, limits)
        except (BadRecordError, ValueError):
            expected.bad.append(start)
            continue
        expected.samples += samples
        expected.nulls += nulls
    return expected


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _object(text: bytes, limits: Limits) -> tuple[list[FlatSample], int]:
    pairs = json.loads(
        text.decode("utf-8", "surrogateescape"),
        parse_float=_Number,
        parse_int=_Number,
        parse_constant=_no_constant,
        object_pairs_hook=tuple,
    )
    require(isinstance(pairs, tuple))
    keys = [key for key, _ in pairs if key in ("metric", "values", "timestamps")]
    require(sorted(keys) == ["metric", "timestamps", "values"])
    parts = dict(pairs)
    metric, values, times = parts["metric"], parts["values"], parts["timestamps"]
    require(isinstance(metric, tuple) and isinstance(values, list) and isinstance(times, list))
    require(len(values) == len(times) > 0)
    require(all(type(value) is str for _, value in metric))
    key = labels([(_utf8(name), _utf8(value)) for name, value in metric], limits, metric=False)
    moments = [_moment(time) for time in times]
    samples = [(key, moment, found) for moment, value in zip(moments, values, strict=True) if (found := _value(value))]
    return samples, len(values) - len(samples)


def _utf8(text: str) -> bytes:
    # Halves of surrogate pairs, which invalid UTF-8 bytes have also become, make the text invalid UTF-8.
    return text.encode("utf-8", "surrogatepass")


def _moment(time: object) -> int:
    require(isinstance(time, _Number))
    return millis(str(time).encode(), 0)


def _value(value: object) -> bytes | None:
    """The bits, or None for null."""
    if value is None:
        return None
    if isinstance(value, _Number):
        return bits(float(value))
    require(isinstance(value, str))
    sign, word = (-1.0, str(value)[1:]) if str(value).startswith("-") else (1.0, str(value))
    if word in ("null", "Null"):
        return None
    if word in ("nan", "NaN"):
        return NAN_BITS
    require(word in ("Inf", "inf", "Infinity", "infinity"))
    return bits(sign * float("inf"))

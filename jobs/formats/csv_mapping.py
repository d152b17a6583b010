"""CSV options from a mapping, which comes from a TOML file or the command line.

A column is referenced by its header or by its number, starting at 1:

    metric = "cpu_usage"              # a constant; or metric = {column = "name"}
    value = "usage"                   # or values = ["usage", {column = "temp", metric = "temperature"}]
    time = {column = "at", unit = "s"}    # or format = "rfc3339" or a pattern, and then timezone = "Europe/Berlin"
    labels = ["host", "dc"]           # or {instance = "host", dc = 3}
    constants = {env = "prod"}
    delimiter = ","
    quote = '"'
    header = true
    multiline = false

The default metric of a value is the header of its column.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import get_args

from strandline.errors import Fatal
from strandline.jobs.bad_records import printable
from strandline.jobs.formats.csv_options import CsvOptions, CsvValue, check_marks
from strandline.jobs.formats.time_formats import PatternTime, Rfc3339Time, TimeFormat, Unit, UnixTime

_KEYS = (
    "metric",
    "value",
    "values",
    "time",
    "labels",
    "constants",
    "delimiter",
    "quote",
    "header",
    "multiline",
)
_RFC3339 = "rfc3339"
_MAX_LISTED = 50
_COLUMN_FORM = "Name a column by its header or by its number, starting at 1."


def first_row(head: bytes, mapping: Mapping[str, object]) -> tuple[str, ...]:
    """The fields of a file's first row, for `csv_options`. `head` are the file's first bytes."""
    delimiter, quote = _marks(mapping)
    text = io.StringIO(head.decode("utf-8-sig", "replace"), newline="")
    rows = (
        csv.reader(text, delimiter=delimiter, quotechar=quote)
        if quote
        else csv.reader(text, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    )
    try:
        return next((tuple(row) for row in rows if row), ())
    except csv.Error as error:
        raise Fatal(f"the first row is not CSV: {error}", remedy="Check delimiter and quote.") from error


def csv_options(mapping: Mapping[str, object], names: Sequence[str]) -> CsvOptions:
    """The options of a mapping for a file with the first row `names`, of which only the length is used if the file has
    no header.
    """
    if not mapping:
        raise Fatal(
            "CSV needs a mapping, which defines the meaning of its columns",
            remedy="Give one with --mapping FILE, or with --metric, --value, --time and --label; see docs/pipeline.md",
        )
    unknown = sorted(set(mapping).difference(_KEYS))
    if unknown:
        raise Fatal(f"the CSV mapping has the unknown key {unknown[0]!r}", remedy=f"Known are {', '.join(_KEYS)}.")
    header = _flag(mapping, "header", default=True)
    columns = _Columns(names, header=header)
    time_column, time = _time(mapping, columns)
    delimiter, quote = _marks(mapping)
    return CsvOptions(
        columns=len(names),
        values=_values(mapping, columns),
        time_column=time_column,
        time=time,
        labels=_labels(mapping, columns),
        constants=_constants(mapping),
        delimiter=delimiter,
        quote=quote,
        header=header,
        multiline=_flag(mapping, "multiline", default=False),
    )


class _Columns:
    """The columns of a file, by name and number."""

    def __init__(self, names: Sequence[str], *, header: bool) -> None:
        if not names:
            raise Fatal("the CSV file has no columns", remedy="Check that its first row is not empty.")
        self.names = tuple(names)
        self._header = header

    def number(self, column: object, key: str) -> int:
        """The index, starting at 0, of the column that a key of the mapping references."""
        if isinstance(column, int) and not isinstance(column, bool):
            if 1 <= column <= len(self.names):
                return column - 1
            raise Fatal(f"{key} names the column {column}, which does not exist", remedy=self._existing())
        if not isinstance(column, str):
            raise Fatal(f"{key} = {column!r} is not a column", remedy=_COLUMN_FORM)
        if not self._header:
            raise Fatal(
                f"{key} names the column {column!r}, but the file has no header",
                remedy=f"Use a number from 1 to {len(self.names)}, or set header = true.",
            )
        found = self.names.count(column)
        if found == 0:
            raise Fatal(f"{key} names the column {column!r}, which does not exist", remedy=self._existing())
        if found > 1:
            raise Fatal(f"{key} names the column {column!r}, which exists {found} times", remedy="Use its number.")
        return self.names.index(column)

    def name(self, number: int, key: str) -> str:
        """The header of a column, as the name of a metric or label."""
        if not self._header:
            raise Fatal(f"{key} needs a name for the column {number + 1}", remedy="The file has no header: give one.")
        return self.names[number]

    def _existing(self) -> str:
        if self._header:
            more = f" and {len(self.names) - _MAX_LISTED} more" if len(self.names) > _MAX_LISTED else ""
            return f"The columns are {printable(', '.join(self.names[:_MAX_LISTED]))}{more}."
        return f"There are {len(self.names)} columns, starting at 1."


def _values(mapping: Mapping[str, object], columns: _Columns) -> tuple[CsvValue, ...]:
    if ("value" in mapping) == ("values" in mapping):
        raise Fatal("the CSV mapping needs either value or values", remedy="Name the column or columns of values.")
    if "value" in mapping:
        return (_value(mapping["value"], "value", mapping.get("metric"), columns),)
    entries = mapping["values"]
    if not isinstance(entries, list | tuple) or not entries:
        raise Fatal(f"values = {entries!r} is invalid", remedy="It must be a list of columns.")
    return tuple(_value(entry, "values", mapping.get("metric"), columns) for entry in entries)


def _value(entry: object, key: str, metric: object, columns: _Columns) -> CsvValue:
    if isinstance(entry, Mapping):
        _check_table(entry, key, ("column", "metric"))
        metric = entry.get("metric", metric)
        entry = entry.get("column")
    number = columns.number(entry, key)
    if metric is None:
        return CsvValue(number, columns.name(number, "metric"))
    if isinstance(metric, Mapping):
        _check_table(metric, "metric", ("column",))
        return CsvValue(number, columns.number(metric.get("column"), "metric"))
    return CsvValue(number, _text(metric, "metric"))


def _time(mapping: Mapping[str, object], columns: _Columns) -> tuple[int, TimeFormat]:
    time = mapping.get("time")
    if not isinstance(time, Mapping) or "column" not in time:
        what = "the mapping has no time" if time is None else f"time = {time!r} is invalid"
        raise Fatal(what, remedy='Give it as time = {column = "...", unit = "s"} or with a format.')
    _check_table(time, "time", ("column", "unit", "format", "timezone"))
    number = columns.number(time["column"], "time")
    if ("unit" in time) == ("format" in time):
        units = ", ".join(get_args(Unit))
        raise Fatal("time needs either a unit or a format", remedy=f"Units are {units}; a format may be {_RFC3339}.")
    if "unit" in time:
        # The class rejects an unknown unit.
        form: TimeFormat = UnixTime(_text(time["unit"], "time.unit"))  # type: ignore[arg-type]
    else:
        pattern = _text(time["format"], "time.format")
        if pattern != _RFC3339:
            zoned = PatternTime(pattern, _text(time.get("timezone", "UTC"), "time.timezone"))
            if "timezone" in time and "%z" in pattern:
                raise Fatal("time has both %z and a timezone", remedy="Remove one of them.")
            return number, zoned
        form = Rfc3339Time()
    if "timezone" in time:
        raise Fatal("time has a timezone, but no local times", remedy="Remove timezone.")
    return number, form


def _labels(mapping: Mapping[str, object], columns: _Columns) -> tuple[tuple[str, int], ...]:
    labels = mapping.get("labels", ())
    if isinstance(labels, Mapping):
        return tuple(
            (_text(name, "labels"), columns.number(column, f"labels.{name}")) for name, column in labels.items()
        )
    if isinstance(labels, list | tuple):
        numbers = [columns.number(column, "labels") for column in labels]
        return tuple((columns.name(number, "labels"), number) for number in numbers)
    raise Fatal(f"labels = {labels!r} is invalid", remedy="Give a list of columns or a table from labels to columns.")


def _constants(mapping: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    constants = mapping.get("constants", {})
    if not isinstance(constants, Mapping):
        raise Fatal(f"constants = {constants!r} is invalid", remedy="Give a table from labels to values.")
    return tuple((_text(name, "constants"), _text(value, f"constants.{name}")) for name, value in constants.items())


def _marks(mapping: Mapping[str, object]) -> tuple[str, str]:
    delimiter, quote = mapping.get("delimiter", ","), mapping.get("quote", '"')
    if not isinstance(delimiter, str) or not isinstance(quote, str):
        raise Fatal(f"delimiter = {delimiter!r} or quote = {quote!r} is invalid", remedy="Each must be one character.")
    check_marks(delimiter, quote)
    return delimiter, quote


def _flag(mapping: Mapping[str, object], key: str, *, default: bool) -> bool:
    flag = mapping.get(key, default)
    if not isinstance(flag, bool):
        raise Fatal(f"{key} = {flag!r} is invalid", remedy="It must be true or false.")
    return flag


def _text(text: object, key: str) -> str:
    if not isinstance(text, str) or not text:
        raise Fatal(f"{key} = {text!r} is invalid", remedy="It must be a non-empty string.")
    return text


def _check_table(table: Mapping[object, object], key: str, known: Sequence[str]) -> None:
    unknown = sorted(str(name) for name in table if name not in known)
    if unknown:
        raise Fatal(f"{key} has the unknown key {unknown[0]!r}", remedy=f"Known are {', '.join(known)}.")

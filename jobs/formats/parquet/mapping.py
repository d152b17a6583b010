"""The mapping of a Parquet file: which columns are the metric, the labels, the time and the value."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from strandline.errors import Fatal

METRIC_LABEL = "__name__"
UNITS = ("s", "ms", "us", "ns")
_KEYS = ("metric", "value", "time", "labels", "labels_map", "constants")


class UnusableMapping(Fatal):
    """A mapping is malformed, or does not match the columns of a file."""

    def __init__(self, message: str, remedy: str = "Correct the mapping") -> None:
        super().__init__(message, remedy=remedy)


@dataclass(frozen=True, slots=True)
class ParquetMapping:
    """The names of columns. A label has its own column (`labels` are pairs of name and column), is in the column of
    maps, or is constant. The metric is the label `__name__`, and handled like any other label. `time_unit` is the unit
    of times that are numbers.
    """

    value: str
    time: str
    time_unit: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    labels_map: str | None = None
    constants: tuple[tuple[str, str], ...] = ()

    @property
    def columns(self) -> list[str]:
        """The distinct columns that are read."""
        columns = [self.value, self.time, *(column for _, column in self.labels)]
        return list(dict.fromkeys(columns if self.labels_map is None else [*columns, self.labels_map]))

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "ParquetMapping":
        """From a TOML table. Raises `UnusableMapping`.

        value = "value"                              the column
        time = "time"                                the column, or { column = "time", unit = "ms" } for numbers
        metric = "up"                                the name, or { column = "metric" }
        labels = ["job", "instance"]                 columns, or { label = "column" }
        labels_map = "labels"                        the column with a map of labels
        constants = { cluster = "a" }                labels of all samples
        """
        if unknown := sorted(set(table) - set(_KEYS)):
            raise UnusableMapping(f"the mapping has unknown keys: {_listed(unknown)}", f"Known are: {_listed(_KEYS)}")
        time, unit = _time(table)
        labels = [*_metric_column(table), *_label_columns(table)]
        constants = [*_metric_constant(table), *_texts(table, "constants").items()]
        labels_map = _column(table, "labels_map") if "labels_map" in table else None
        names = [name for name, _ in (*labels, *constants)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UnusableMapping(f"the mapping has labels twice: {_listed(twice)}")
        if not names and labels_map is None:
            raise UnusableMapping("the mapping has neither a metric nor labels", 'Name at least "metric"')
        return cls(_column(table, "value"), time, unit, tuple(labels), labels_map, tuple(constants))

    def check(self, path: str, schema: pa.Schema) -> None:
        """Raise `UnusableMapping` unless the columns exist and have supported types."""
        existing = f"Columns of {path}: {', '.join(f'{field.name} ({field.type})' for field in schema)}"
        if missing := [name for name in self.columns if name not in schema.names]:
            raise UnusableMapping(f"{path} has no column {_listed(missing)}", existing)
        for name in self.columns:
            if schema.names.count(name) > 1:
                raise UnusableMapping(f"{path} has more than one column {name}", existing)

        def reject(column: str, what: str) -> None:
            raise UnusableMapping(f"column {column} of {path} is {schema.field(column).type}, {what}", existing)

        if not _is_number(schema.field(self.value).type):
            reject(self.value, "but a value must be a floating-point number or an integer")
        time = schema.field(self.time).type
        if pa.types.is_timestamp(time):
            if self.time_unit is not None:
                reject(self.time, f'which has its own unit: the mapping\'s unit "{self.time_unit}" is for numbers')
        elif not _is_number(time):
            reject(self.time, "but a time must be a timestamp or a number")
        elif self.time_unit is None:
            reject(self.time, f"so the mapping must have its unit ({_listed(UNITS)})")
        for _, column in self.labels:
            kind = schema.field(column).type
            if not _is_text(kind):
                reject(column, "but a label must be a string")
        if self.labels_map is not None:
            kind = schema.field(self.labels_map).type
            if not (pa.types.is_map(kind) and _is_text(kind.key_type) and _is_text(kind.item_type)):
                reject(self.labels_map, "but labels must be a map of strings to strings")


EXPORT_MAPPING = ParquetMapping(value="value", time="time", labels=((METRIC_LABEL, "metric"),), labels_map="labels")
"""The columns that `strandline job export` writes."""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _column(table: Mapping[str, Any], key: str) -> str:
    column = table.get(key)
    if not isinstance(column, str) or not column:
        what = f"is {column!r}, but must be" if key in table else "is missing: it must be"
        raise UnusableMapping(f'"{key}" of the mapping {what} the name of a column')
    return column


def _texts(table: Mapping[str, Any], key: str) -> dict[str, str]:
    texts = table.get(key, {})
    if not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        raise UnusableMapping(f'"{key}" of the mapping is {texts!r}, but must be a table of strings')
    return dict(texts)


def _time(table: Mapping[str, Any]) -> tuple[str, str | None]:
    time = table.get("time")
    if not isinstance(time, Mapping):
        return _column(table, "time"), None
    if unknown := sorted(set(time) - {"column", "unit"}):
        raise UnusableMapping(f'"time" of the mapping has unknown keys: {_listed(unknown)}')
    unit = time.get("unit")
    if unit is not None and unit not in UNITS:
        raise UnusableMapping(f'"unit" of the mapping\'s time is {unit!r}', f"Use one of: {_listed(UNITS)}")
    return _column(time, "column"), unit


def _metric_column(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    metric = table.get("metric")
    if not isinstance(metric, Mapping):
        return []
    column = metric.get("column")
    if set(metric) != {"column"} or not isinstance(column, str) or not column:
        raise UnusableMapping(f'"metric" of the mapping is {metric!r}, but must be a name or {{ column = "name" }}')
    return [(METRIC_LABEL, column)]


def _metric_constant(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    metric = table.get("metric")
    if metric is None or isinstance(metric, Mapping):
        return []
    if not isinstance(metric, str) or not metric:
        raise UnusableMapping(f'"metric" of the mapping is {metric!r}, but must be a name or {{ column = "name" }}')
    return [(METRIC_LABEL, metric)]


def _label_columns(table: Mapping[str, Any]) -> list[tuple[str, str]]:
    labels = table.get("labels", [])
    if isinstance(labels, Mapping):
        return list(_texts(table, "labels").items())
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise UnusableMapping(f'"labels" of the mapping is {labels!r}, but must be a list or a table of columns')
    return [(name, name) for name in labels]

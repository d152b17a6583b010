"""The mapping of an import from options of the command line. Each option replaces its key of the mapping file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from strandline.errors import ExitCode, Fatal
from strandline.jobs.formats.time_formats import Unit
from strandline.jobs.importing.spec import Format


class MappingOptionUnusable(Fatal):
    """An option for the mapping is invalid."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class MappingOptions:
    """The options. `values` are COLUMN or COLUMN=METRIC, `labels` are COLUMN or LABEL=COLUMN, `constants` are
    LABEL=VALUE, and `time` is COLUMN or COLUMN:FORMAT.
    """

    metric: str | None = None
    metric_column: str | None = None
    values: Sequence[str] = ()
    time: str | None = None
    timezone: str | None = None
    labels: Sequence[str] = ()
    constants: Sequence[str] = ()

    def applied_to(self, mapping: Mapping[str, Any], format_: Format) -> Mapping[str, Any]:
        """The mapping with these options applied. Raises `MappingOptionUnusable`."""
        if self == MappingOptions():
            return mapping
        if format_ not in (Format.CSV, Format.PARQUET):
            raise MappingOptionUnusable(
                f"the format {format_} does not use a mapping",
                remedy="Remove --metric, --metric-column, --value, --time, --timezone, --label and --constant",
            )
        replaced = {"value", "values"} if self.values else set()
        kept = {key: value for key, value in mapping.items() if key not in replaced}
        return {**kept, **self._keys(is_csv=format_ is Format.CSV)}

    def _keys(self, *, is_csv: bool) -> dict[str, Any]:
        def column(text: str) -> str | int:
            # Only CSV columns can be given by number.
            return int(text) if is_csv and text.isascii() and text.isdecimal() else text

        found: dict[str, Any] = {}
        if self.metric is not None and self.metric_column is not None:
            raise MappingOptionUnusable("--metric and --metric-column exclude each other", remedy="Give one of them")
        if self.metric is not None:
            found["metric"] = self.metric
        if self.metric_column is not None:
            found["metric"] = {"column": column(self.metric_column)}
        values = [one.partition("=") for one in self.values]
        if len(values) == 1 and not values[0][1]:
            found["value"] = column(values[0][0])
        elif values:
            found["values"] = [
                {"column": column(name), "metric": metric} if is_named else column(name)
                for name, is_named, metric in values
            ]
        if self.time is not None:
            name, _, form = self.time.partition(":")
            found["time"] = self._time(column(name), form)
        elif self.timezone is not None:
            raise MappingOptionUnusable("--timezone needs --time", remedy="Also give --time COLUMN:FORMAT")
        if self.labels:
            labels = [one.partition("=") for one in self.labels]
            found["labels"] = {name: column(source if is_named else name) for name, is_named, source in labels}
        if self.constants:
            constants = [one.partition("=") for one in self.constants]
            if unusable := [name for name, is_named, _ in constants if not is_named]:
                raise MappingOptionUnusable(
                    f"--constant {unusable[0]} has no value", remedy="Give it as --constant LABEL=VALUE"
                )
            found["constants"] = {name: value for name, _, value in constants}
        return found

    def _time(self, column: str | int, form: str) -> object:
        if not form and self.timezone is None:
            # A Parquet column may have a timestamp type.
            return column
        key = "unit" if form in get_args(Unit) else "format"
        return {"column": column, key: form} | ({"timezone": self.timezone} if self.timezone is not None else {})

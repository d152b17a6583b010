"""The options of CSV, with columns as numbers from 0 on."""

from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.jobs.formats.time_formats import TimeFormat

METRIC_LABEL = "__name__"


@dataclass(frozen=True, slots=True)
class CsvValue:
    """A column of values, and the name of their metric: a text, or the number of the column that holds it."""

    column: int
    metric: str | int


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How the rows of a CSV file become samples.

    A row has exactly `columns` fields. Each value that is not empty is a sample with the row's time and labels: those
    of `labels`, as (name, column), and `constants`, as (name, value). An empty `quote` means that no field is quoted.
    A quoted field may hold newlines only with `multiline`. With `header` the file's first row holds names.
    """

    columns: int
    values: tuple[CsvValue, ...]
    time_column: int
    time: TimeFormat
    labels: tuple[tuple[str, int], ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    delimiter: str = ","
    quote: str = '"'
    header: bool = False
    multiline: bool = False

    def __post_init__(self) -> None:
        check_marks(self.delimiter, self.quote)
        if not self.values:
            raise Fatal("the CSV mapping has no value column", remedy="Name at least one.")
        metrics = [value.metric for value in self.values]
        if "" in metrics:
            raise Fatal("the CSV mapping has an empty metric name", remedy="Give each value column a metric.")
        numbers = [self.time_column, *(value.column for value in self.values), *(column for _, column in self.labels)]
        numbers += [metric for metric in metrics if isinstance(metric, int)]
        for number in numbers:
            if not 0 <= number < self.columns:
                raise Fatal(f"the CSV column {number} does not exist", remedy=f"There are {self.columns}, from 0 on.")
        names = [METRIC_LABEL, *(name for name, _ in self.labels), *(name for name, _ in self.constants)]
        for name in names:
            if not name:
                raise Fatal("the CSV mapping has a label with an empty name", remedy="Give it a name.")
            if names.count(name) > 1:
                remedy = "Use metric for __name__." if name == METRIC_LABEL else "Use each label name once."
                raise Fatal(f"the CSV mapping has the label {name!r} twice", remedy=remedy)


def check_marks(delimiter: str, quote: str) -> None:
    """Refuse a delimiter or a quote that can't be one."""
    for what, mark in (("delimiter", delimiter), ("quote", quote)):
        if what == "quote" and not mark:
            continue
        if len(mark) != 1 or not mark.isascii() or mark in "\r\n\0":
            raise Fatal(f"the CSV {what} {mark!r} is not usable", remedy="It must be a single ASCII character.")
    if delimiter == quote:
        raise Fatal(f"the CSV delimiter and quote are both {quote!r}", remedy="Use different characters.")

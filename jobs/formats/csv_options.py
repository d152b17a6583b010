"""The options of CSV, with columns as indices starting at 0."""

from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.jobs.formats.time_formats import TimeFormat

METRIC_LABEL = "__name__"


@dataclass(frozen=True, slots=True)
class CsvValue:
    """A column of values, and their metric: a name, or the index of the column with the name."""

    column: int
    metric: str | int


@dataclass(frozen=True, slots=True)
class CsvOptions:
    """How the rows of a CSV file become samples.

    A row must have `columns` fields. Each non-empty value is a sample with the time of the row and its labels: `labels`
    are (name, column), and `constants` are (name, value). With an empty `quote`, no field is quoted. A quoted field may
    only contain newlines with `multiline`. With `header`, the first row of the file is a header.
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
                raise Fatal(f"the CSV column {number} does not exist", remedy=f"There are {self.columns}, from 0.")
        names = [METRIC_LABEL, *(name for name, _ in self.labels), *(name for name, _ in self.constants)]
        for name in names:
            if not name:
                raise Fatal("the CSV mapping has a label with an empty name", remedy="Give it a name.")
            if names.count(name) > 1:
                remedy = "Use metric for __name__." if name == METRIC_LABEL else "Use each label name once."
                raise Fatal(f"the CSV mapping has the label {name!r} twice", remedy=remedy)


def check_marks(delimiter: str, quote: str) -> None:
    """Reject an invalid delimiter or quote."""
    for what, mark in (("delimiter", delimiter), ("quote", quote)):
        if what == "quote" and not mark:
            continue
        if len(mark) != 1 or not mark.isascii() or mark in "\r\n\0":
            raise Fatal(f"the CSV {what} {mark!r} is invalid", remedy="It must be a single ASCII character.")
    if delimiter == quote:
        raise Fatal(f"the CSV delimiter and quote are both {quote!r}", remedy="Use different characters.")

"""What may be asked of a shard. Matchers are PromQL's; a selector is a tuple of them, and a series is meant that all
matchers of one selector match. Times are milliseconds, both ends included.
"""

from dataclasses import dataclass

from strandline.index.matchers import Matcher
from strandline.promql.plan.fragments import Fragment
from strandline.time_range import TimeRange

Selector = tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class SeriesAsk:
    """Which series any of the selectors matches, at most `limit`; those that were there in the range."""

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class LabelNamesAsk:
    """The names of the labels of such series; of all series without a selector."""

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class LabelValuesAsk:
    """The values that a label has in such series."""

    label: str
    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class SamplesAsk:
    """The samples of the series that one selector matches, in a range of times. More series or samples than the two
    limits are refused.
    """

    selector: Selector
    within: TimeRange
    max_series: int
    max_samples: int
    only: bytes = b""
    """If it is not empty, only series with one of these key hashes are meant: pairs of little-endian u64, low and
    high.
    """


@dataclass(frozen=True, slots=True)
class EvaluateAsk:
    """The partial result of a fragment of a PromQL query.

    A series whose key hash modulo `partitions` is not the shard's number is left out, and its hash returned; those with
    a hash in `without` (pairs of little-endian u64, low and high) are left out as well. `max_samples` bounds samples
    and cells that are in memory at once.
    """

    fragment: Fragment
    partitions: int
    max_series: int
    max_samples: int
    without: bytes = b""

    @property
    def within(self) -> TimeRange:
        """The times of the samples that count."""
        return TimeRange(self.fragment.first, self.fragment.last)


@dataclass(frozen=True, slots=True)
class SeriesHashesAsk:
    """The key hashes of such series, by which a series that is in two shards counts once. Of more than `limit` only
    those with the lowest hashes: a sample.
    """

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class KeyPageAsk:
    """The series that had a sample up to the end of the range and one since its beginning, in the order of their key
    hashes: those from `first` to `last`, both included, at most `limit`. A hash is 128 bits; the words of each bound
    are (low, high), compared in this order. With `newest` also the newest sample of each within the range, for which at
    most `max_samples` are read.
    """

    selectors: tuple[Selector, ...]
    within: TimeRange
    first: tuple[int, int]
    last: tuple[int, int]
    limit: int
    newest: bool = False
    max_samples: int = 0


@dataclass(frozen=True, slots=True)
class CardinalityAsk:
    """What makes the index large: tops of `limit` entries, over the series that match and were there in the range. With
    `label` the values of that label are ranked, too.

    Between shards: `listed_bytes` is how many bytes of values the answer may list for a merge (0: none), and `without`
    has the part ids, as little-endian u32, of series that another shard counts.

    With `samples` also about how many samples the series have in the range, of which none is read.
    """

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int
    label: str | None = None
    listed_bytes: int = 0
    without: bytes = b""
    samples: bool = False


@dataclass(frozen=True, slots=True)
class BucketsAsk:
    """The buckets of the range, each with how many series had a sample in it, by the bitmaps."""

    within: TimeRange | None
    limit: int


Lookup = SeriesAsk | LabelNamesAsk | LabelValuesAsk
SERIES, LABEL_NAMES, LABEL_VALUES = "series", "label-names", "label-values"
"""The kinds of look-ups."""
Ask = (
    SeriesAsk
    | LabelNamesAsk
    | LabelValuesAsk
    | SamplesAsk
    | EvaluateAsk
    | SeriesHashesAsk
    | KeyPageAsk
    | CardinalityAsk
    | BucketsAsk
)

"""Requests to shards.

Matchers are PromQL's. A selector is a tuple of matchers, and selects the series that all of them match. Several
selectors select the series that any of them selects; no selector selects all series. Times are milliseconds, and ranges
include both ends. A series belongs to a range if it existed in it.
"""

from dataclasses import dataclass

from strandline.index.matchers import Matcher
from strandline.promql.plan.fragments import Fragment
from strandline.time_range import TimeRange

Selector = tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """The selected series that existed in the range, at most `limit`."""

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class LabelNamesRequest:
    """The label names of the selected series."""

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class LabelValuesRequest:
    """The values of one label in the selected series."""

    label: str
    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class SamplesRequest:
    """The samples of the selected series in a range of times. More series or samples than the limits are refused."""

    selector: Selector
    within: TimeRange
    max_series: int
    max_samples: int
    only: bytes = b""
    """If not empty, only series with one of these key hashes: pairs of little-endian u64, low and high."""


@dataclass(frozen=True, slots=True)
class EvaluateRequest:
    """The partial result of a fragment of a PromQL query.

    A series whose key hash modulo `partitions` is not the shard's number is left out, and its hash returned. Series
    with a hash in `without` (pairs of little-endian u64, low and high) are left out as well. `max_samples` limits the
    samples and cells that are in memory at once.
    """

    fragment: Fragment
    partitions: int
    max_series: int
    max_samples: int
    without: bytes = b""

    @property
    def within(self) -> TimeRange:
        """The times of the samples that the fragment reads."""
        return TimeRange(self.fragment.first, self.fragment.last)


@dataclass(frozen=True, slots=True)
class SeriesHashesRequest:
    """The key hashes of the selected series, by which a series that two shards have counts once. With more than `limit`
    series, only the lowest `limit` hashes: a sample.
    """

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int


@dataclass(frozen=True, slots=True)
class KeyPageRequest:
    """The selected series with a sample up to the end of the range and one since its beginning, in the order of their
    key hashes, from `first` to `last`, both included, at most `limit`. A hash has 128 bits. The bounds are (low, high)
    words, compared in this order. With `newest`, also the newest sample of each series within the range, for which at
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
class CardinalityRequest:
    """What makes the index large: tops of `limit` entries over the selected series. With `label`, also the values of
    that label with the most series.

    For merging shards: `listed_bytes` is how many bytes of values the answer may list (0: none), and `without` has the
    part ids, as little-endian u32, of series that another shard counts.

    With `samples`, also an estimate of the samples that the series have in the range. It reads no sample.
    """

    selectors: tuple[Selector, ...]
    within: TimeRange | None
    limit: int
    label: str | None = None
    listed_bytes: int = 0
    without: bytes = b""
    samples: bool = False


@dataclass(frozen=True, slots=True)
class BucketsRequest:
    """The buckets of the range, each with the number of series that had a sample in it, by the bitmaps."""

    within: TimeRange | None
    limit: int


LookupRequest = SeriesRequest | LabelNamesRequest | LabelValuesRequest
"""The requests that a shard's JVM may answer."""
SERIES, LABEL_NAMES, LABEL_VALUES = "series", "label-names", "label-values"
"""The kinds of `LookupRequest`, as metrics name them."""
ShardRequest = (
    SeriesRequest
    | LabelNamesRequest
    | LabelValuesRequest
    | SamplesRequest
    | EvaluateRequest
    | SeriesHashesRequest
    | KeyPageRequest
    | CardinalityRequest
    | BucketsRequest
)

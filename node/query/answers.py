"""What is answered: by a shard, and, under the same names, by a node whose shards' answers were put together.

`warnings` say in words what an answer may lack: a shard that is still recovering, a list that was cut off. An answer
without a warning is whole.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from strandline.arrays import F64s, I64s
from strandline.index.cardinality import LabelCardinality, ValueCardinality

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class KeyBytes:
    """Part keys, in the layout of `strandline.index.documents`: key i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def key(self, place: int) -> bytes:
        """One key. For people and tests."""
        return self.data[self.offsets[place] : self.offsets[place + 1]].tobytes()


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """Series in the order of their labels (as Prometheus compares label sets), each once."""

    keys: KeyBytes
    more: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermsAnswer:
    """Names or values, in order of their code points, each once, as UTF-8: term i is `data[offsets[i]:offsets[i+1]]`;
    and the number of series that have each, summed over shards. `of_all` says that they are those of all series there
    are, and not of some that were asked about: such a list can be kept.
    """

    offsets: I64s
    data: Bytes
    counts: I64s
    more: bool
    warnings: tuple[str, ...] = ()
    of_all: bool = False

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def terms(self) -> list[str]:
        """As texts."""
        text, ends = self.data.tobytes(), self.offsets.tolist()
        return [text[start:end].decode() for start, end in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class SamplesAnswer:
    """Series in the order of their labels, each once, with at least one sample; series i has the samples
    `first_sample[i]` up to, not including, `first_sample[i + 1]`, in rising order of their times, no time twice.
    """

    keys: KeyBytes
    first_sample: I64s
    time: I64s
    value: F64s
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CardinalityAnswer:
    """Series, labels by name, and the tops. Over several shards the figures of labels' values are upper bounds where a
    value lies in several, and `exact_values` says whether they are not.
    """

    series: int
    labels: tuple[LabelCardinality, ...]
    top_pairs_by_series: tuple[ValueCardinality, ...]
    top_metrics_by_series: tuple[ValueCardinality, ...]
    top_values_by_series: tuple[ValueCardinality, ...] = ()
    exact_values: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BucketFigures:
    """One bucket of one shard: its times, how many series had a sample in it, and how many records of keys it stores;
    of a stored one those that no later bucket stores again. `samples` are those in the store and in memory, `bytes`
    what they take in memory and in the spill until they are stored, `segments` the rows in the store. `state` is open,
    closed (not all of it is stored yet) or stored.
    """

    shard: int
    bucket: int
    start: int
    end: int
    active: int
    changed: int
    samples: int
    bytes: int
    state: str
    segments: int = 0


@dataclass(frozen=True, slots=True)
class BucketsAnswer:
    """Buckets, oldest first, and by shard."""

    buckets: tuple[BucketFigures, ...]
    warnings: tuple[str, ...] = field(default=())


Answer = SeriesAnswer | TermsAnswer | SamplesAnswer | CardinalityAnswer | BucketsAnswer

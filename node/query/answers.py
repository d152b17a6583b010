"""What is answered: by a shard, and, under the same names, by a node whose shards' answers were put together.

`warnings` say in words what an answer may lack: a shard that is still recovering, a list that was cut off. An answer
without a warning is whole.
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from strandline.arrays import F64s, I64s, U32s, U64s
from strandline.index.cardinality import LabelCardinality, ValueCardinality
from strandline.index.key_bytes import Bytes, KeyBytes
from strandline.node.shard.bucket_report import BucketFigures
from strandline.promql.annotations import Annotations
from strandline.promql.evaluation.partials import Partial
from strandline.promql.values import Samples, Vector

NO_SAMPLE: Final = np.iinfo(np.int64).min
"""The time of a sample that there is not."""

LACKS_LATER_ONLY: Final = "the answer may lack samples that came later than shard.late_by"
"""The end of a warning about samples that are expected to come hardly ever: remote read answers all the same."""


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
class EvaluateAnswer:
    """What a fragment gives in one shard: a partial result without the series that lie in the wrong partition, whose
    hashes are `misplaced` (pairs of little-endian u64, low and high); and how many samples were read for it.
    """

    partial: Partial
    misplaced: bytes
    samples: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FragmentResult:
    """What a fragment gives over all shards."""

    value: Vector | Samples
    annotations: Annotations
    samples: int
    """How many samples were read for it."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesHashesAnswer:
    """`series` match in a shard; their part ids and key hashes. If these are fewer, they are the ones with the lowest
    `low`.
    """

    series: int
    part_ids: U32s
    low: U64s
    high: U64s
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyPageAnswer:
    """Series in the order of their key hashes, each once: key, hash, and the times of the first and the last sample.
    `time` and `value` are those of the newest sample that was looked for; `NO_SAMPLE` where there is none, or if none
    was asked for. If there are `more` series, they lie behind these. A node's answer names the partitions that the node
    does not serve, which is no warning: other nodes may be asked for them.
    """

    keys: KeyBytes
    low: U64s
    high: U64s
    start: I64s
    end: I64s
    time: I64s
    value: F64s
    more: bool
    warnings: tuple[str, ...] = ()
    unserved: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesCount:
    """How many series there are, or about how many."""

    series: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class LabelTerms:
    """The values of labels, for merging shards: label i has the terms `first_term[i]` up to `first_term[i + 1]`, in
    order of their bytes, or, where these would be too many bytes, the lowest hashes of its values from `first_hash[i]`
    up to `first_hash[i + 1]`. Term j is `data[offsets[j]:offsets[j + 1]]`, in `counts[j]` series.
    """

    first_term: I64s
    offsets: I64s
    data: Bytes
    counts: I64s
    first_hash: I64s
    hashes: U64s


@dataclass(frozen=True, slots=True)
class CardinalityAnswer:
    """Series, labels by name, and the tops. A shard's answer is exact. Merged, the figures of `estimated_labels` are
    estimates, and so are those of series if `estimated_series`. `terms` of the labels, in their order, are only in
    answers that are to be merged. `samples` is always an estimate; None unless it was asked for.
    """

    series: int
    labels: tuple[LabelCardinality, ...]
    top_pairs_by_series: tuple[ValueCardinality, ...]
    top_metrics_by_series: tuple[ValueCardinality, ...]
    top_values_by_series: tuple[ValueCardinality, ...] = ()
    terms: LabelTerms | None = None
    estimated_labels: tuple[str, ...] = ()
    estimated_series: bool = False
    samples: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether no figure is an estimate."""
        return not self.estimated_labels and not self.estimated_series


@dataclass(frozen=True, slots=True)
class BucketsAnswer:
    """Buckets, oldest first, and by shard."""

    buckets: tuple[BucketFigures, ...]
    warnings: tuple[str, ...] = field(default=())


Answer = (
    SeriesAnswer
    | TermsAnswer
    | SamplesAnswer
    | EvaluateAnswer
    | SeriesHashesAnswer
    | KeyPageAnswer
    | CardinalityAnswer
    | BucketsAnswer
)

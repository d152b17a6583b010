"""Answers: of a shard to a request, and, with the same types, of all shards of a node, merged.

`warnings` describe what an answer may lack, for example because a shard is recovering. An answer without a warning is
complete.
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
"""The time of a missing sample."""

LACKS_LATER_ONLY: Final = "the answer may lack samples that came later than shard.late_by"
"""The end of a warning about samples that are very rare. Remote read answers in spite of it."""


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """Series in the order of their labels (as Prometheus compares label sets), each once."""

    keys: KeyBytes
    more: bool
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TermsAnswer:
    """Label names or values, in the order of their code points, each once, as UTF-8: term i is
    `data[offsets[i]:offsets[i+1]]`. `counts` has the number of series with each, summed over shards. `of_all` is
    whether they are the terms of all existing series, not only of the selected ones. Such a list can be cached.
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
        """The terms as strings."""
        text, ends = self.data.tobytes(), self.offsets.tolist()
        return [text[start:end].decode() for start, end in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class SamplesAnswer:
    """Series in the order of their labels, each once, with at least one sample; series i has the samples
    `first_sample[i]` up to, not including, `first_sample[i + 1]`, in ascending order of their times, each time once.
    """

    keys: KeyBytes
    first_sample: I64s
    time: I64s
    value: F64s
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluateAnswer:
    """The result of a fragment in one shard: the partial result without misplaced series (those in the wrong
    partition), the hashes of these (pairs of little-endian u64, low and high), and how many samples were read.
    """

    partial: Partial
    misplaced: bytes
    samples: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FragmentResult:
    """The result of a fragment over all shards."""

    value: Vector | Samples
    annotations: Annotations
    samples: int
    """How many samples were read."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesHashesAnswer:
    """How many series a shard has (`series`), and their part ids and key hashes. If there are fewer hashes than series,
    they are those with the lowest `low`.
    """

    series: int
    part_ids: U32s
    low: U64s
    high: U64s
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyPageAnswer:
    """Series in the order of their key hashes, each once: key, hash, and the times of the first and the last sample.
    `time` and `value` are those of the newest sample; `time` is `NO_SAMPLE` without one, or if it was not requested.
    `more` is whether series follow after the page. `unserved` has the partitions that the node does not serve. There is
    no warning about these, since other nodes may serve them.
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
    """A number of series, exact or estimated."""

    series: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class LabelTerms:
    """The values of labels, for merging shards. Label i has the terms `first_term[i]` up to `first_term[i + 1]`, in the
    order of their bytes. If these are too many bytes, it has instead the lowest hashes of its values, `first_hash[i]`
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
    """The number of series, figures by label in the order of their names, and the tops. A shard's answer is exact. In a
    merged answer, the figures of `estimated_labels` are estimates, and so are numbers of series if `estimated_series`.
    `terms` has the values of the labels, in the same order, for merging only. `samples` is always an estimate; None
    unless requested.
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
    """Buckets, oldest first, then by shard."""

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

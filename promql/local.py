"""An engine over series in memory, for `promql test`. The series are divided into shards like a node's series.

As in a node, each shard evaluates the fragments, and the partial results are merged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from zlib import crc32

import numpy as np

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes, joined_keys, take_keys
from strandline.index.matchers import Matcher, MatchOp
from strandline.promql.annotations import NONE, Annotations
from strandline.promql.engine import evaluate, prepare
from strandline.promql.evaluation.evaluator import FragmentValue
from strandline.promql.evaluation.partials import evaluate_partial, merged
from strandline.promql.evaluation.results import Result
from strandline.promql.label_replacement import label_expression
from strandline.promql.plan.fragments import AnyFragment, Fragment
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.values import Samples
from strandline.promql.windows import canonical_nans

Labels = Mapping[str, str]
SamplesOf = Sequence[tuple[int, float]]


class MemoryShard:
    """A shard: series and their samples."""

    def __init__(self, series: Iterable[tuple[Labels, SamplesOf]]) -> None:
        """The times of a series' samples have to be ascending."""
        self._labels: list[Labels] = []
        keys, times, values, counts = list[bytes](), list[int](), list[float](), [0]
        for labels, samples in series:
            self._labels.append({name: value for name, value in labels.items() if value})
            keys.append(encode_part_key(labels))
            times += [time for time, _ in samples]
            values += [value for _, value in samples]
            counts.append(len(samples))
        offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
        self._keys = KeyBytes(offsets, np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8))
        self._first = np.cumsum(counts, dtype=np.int64)
        self._time = np.array(times, dtype=np.int64)
        self._value = canonical_nans(np.array(values, dtype=np.float64))

    def select(self, matchers: Sequence[Matcher], first: int, last: int) -> Samples:
        """The samples of the series that all matchers match, from `first` to `last`."""
        is_wanted = matched_by(matchers)
        indices = [index for index, labels in enumerate(self._labels) if is_wanted(labels)]
        starts, ends = list[int](), list[int]()
        for index in indices:
            own = self._time[self._first[index] : self._first[index + 1]]
            begin, end = np.searchsorted(own, (first, last + 1))
            starts.append(int(self._first[index] + begin))
            ends.append(int(self._first[index] + end))
        rows = np.concatenate([np.arange(0), *(np.arange(*bounds) for bounds in zip(starts, ends, strict=True))])
        counts = np.array([0, *(end - start for start, end in zip(starts, ends, strict=True))], dtype=np.int64)
        keys = take_keys(self._keys, np.array(indices, dtype=np.int64))
        return Samples(keys, np.cumsum(counts), self._time[rows], self._value[rows])


class LocalEngine:
    """Evaluates queries over shards in memory. Each series is in one shard."""

    def __init__(self, shards: Sequence[MemoryShard]) -> None:
        self._shards = shards

    def query(self, text: str, times: QueryTimes) -> Result:
        """The result of a query. Raises `ParseError` and `EvaluationError`."""
        prepared = prepare(text, times)
        fetched, annotations = dict[AnyFragment, FragmentValue](), NONE
        for fragment in prepared.fragments:
            fetched[fragment], found = self.fetch(fragment)
            annotations |= found
        return evaluate(prepared, fetched, annotations)

    def fetch(self, fragment: AnyFragment) -> tuple[FragmentValue, Annotations]:
        """The result of a fragment over all shards."""
        found = self._found(fragment)
        if isinstance(fragment, Fragment):
            return merged(fragment, [evaluate_partial(fragment, samples) for samples in found])
        return _joined(found), NONE

    def selected(self, fragment: AnyFragment) -> Samples:
        """The samples that a fragment reads."""
        return _joined(self._found(fragment))

    def _found(self, fragment: AnyFragment) -> list[Samples]:
        return [shard.select(fragment.matchers, fragment.first, fragment.last) for shard in self._shards]


def split(series: Iterable[tuple[Labels, SamplesOf]], shards: int) -> list[MemoryShard]:
    """Divide series into shards, by the hash of their keys."""
    parts: list[list[tuple[Labels, SamplesOf]]] = [[] for _ in range(shards)]
    for labels, samples in series:
        parts[crc32(encode_part_key(labels)) % shards].append((labels, samples))
    return [MemoryShard(part) for part in parts]


def matched_by(matchers: Sequence[Matcher]) -> Callable[[Labels], bool]:
    """A predicate: whether all matchers match a label set."""
    tests = [(one.label, _test(one)) for one in matchers]
    return lambda labels: all(test(labels.get(label, "")) for label, test in tests)


def _joined(parts: Sequence[Samples]) -> Samples:
    counts = [np.zeros(1, dtype=np.int64), *(np.diff(one.first_sample) for one in parts)]
    return Samples(
        joined_keys([one.keys for one in parts]),
        np.cumsum(np.concatenate(counts)),
        np.concatenate([one.time for one in parts]),
        np.concatenate([one.value for one in parts]),
    )


def _test(matcher: Matcher) -> Callable[[str], bool]:
    """A predicate: whether the matcher matches a value."""
    match matcher.op:
        case MatchOp.EQUAL:
            return lambda value: value == matcher.value
        case MatchOp.NOT_EQUAL:
            return lambda value: value != matcher.value
    program = label_expression(matcher.value)
    wanted = matcher.op is MatchOp.MATCH
    return lambda value: bool(program.find([value])[0, 0] >= 0) is wanted

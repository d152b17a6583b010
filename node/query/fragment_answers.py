"""A fragment of a PromQL query evaluated in one shard: its series are found, read block by block, and folded.

A series normally lies in one shard. One whose key hash names another partition is not put into the partial result: its
hash is returned instead, and the front asks all shards for the samples of such series.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from strandline.arrays import Bools, Rows, U32s
from strandline.index.bitmaps import to_ids
from strandline.index.catalogue import Catalogue
from strandline.index.documents import FewKeys, PartKeyBatch
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.index.part_columns import PartColumns
from strandline.node.query.answers import EvaluateAnswer
from strandline.node.query.asks import EvaluateAsk
from strandline.node.query.group_numbers import GroupNumbers
from strandline.node.query.kept_steps import evaluate_rest
from strandline.node.query.key_hashes import is_among
from strandline.node.query.queries import Cancellation
from strandline.node.query.result_cache import ResultCache
from strandline.node.query.sampling import SampleCount, Wanted, wanted_series
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.query.turns import Turns
from strandline.node.shard.reader import ShardReader
from strandline.promql.evaluation.fragment_rows import fragment_rows
from strandline.promql.evaluation.partials import (
    GroupedFold,
    Partial,
    RowsFold,
    depends_on_values,
    group_table,
    needs_keys,
)
from strandline.promql.plan.fragments import Fragment, Grouping
from strandline.promql.values import F64Matrix, Samples
from strandline.promql.windows import canonical_nans
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import TimeRange

# A block has at most about so many samples: enough that the call of a kernel costs nothing beside its work.
_BLOCK_SAMPLES = 1 << 20
# A part of a block has about so many cells, and so many looks at a sample by a window.
_PART_CELLS, _PART_LOOKS = 1 << 17, 1 << 24
_NO_KEYS = KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))


@dataclass(frozen=True, slots=True)
class ShardView:
    """What a fragment is evaluated over, as of one question."""

    shard: int
    catalogue: Catalogue
    columns: PartColumns
    reader: ShardReader
    groups: GroupNumbers
    results: ResultCache
    turns: Turns
    """Of blocks that are read and evaluated, over all questions."""


def evaluate_fragment(
    view: ShardView, ask: EvaluateAsk, cancellation: Cancellation, warnings: tuple[str, ...]
) -> EvaluateAnswer:
    """Raises `TooManySeries`, `TooManySamples`, `EvaluationError`, and what `cancellation` raises."""
    part_ids, few = _found(view.catalogue, ask)
    check_series(len(part_ids), ask.max_series)
    cancellation.check()
    every = wanted_series(view.columns, part_ids)
    own, misplaced = _placed(every, view.shard, ask)
    evaluation = _Evaluation(view, ask, own, cancellation, few)
    if warnings:
        # What an answer lacks without saying so must not come back in a later one.
        partial = evaluation.evaluate(ask.fragment)
    else:
        partial = evaluate_rest(evaluation, ask.fragment, ask.max_samples, view.results)
    return EvaluateAnswer(partial, misplaced, evaluation.samples, warnings)


def _found(catalogue: Catalogue, ask: EvaluateAsk) -> tuple[U32s, FewKeys | None]:
    """The part ids of the series, which rise, and their keys if they are few: one search finds both."""
    few = catalogue.few_keys((ask.fragment.matchers,), ask.within)
    if few is not None:
        return np.sort(few.part_ids), few
    return to_ids(catalogue.find((ask.fragment.matchers,), ask.within).part_ids), None


def _placed(every: Wanted, shard: int, ask: EvaluateAsk) -> tuple[Wanted, bytes]:
    """The series that are this shard's to evaluate, and the hashes of those that lie in the wrong partition."""
    series = every.series
    is_own: Bools = series.key_low % np.uint64(ask.partitions) == np.uint64(shard)
    misplaced = b""
    if not is_own.all():
        misplaced = np.stack((series.key_low[~is_own], series.key_high[~is_own]), axis=1).astype("<u8").tobytes()
    if ask.without:
        is_own &= ~is_among(series.key_low, series.key_high, ask.without)
    return (every if is_own.all() else every.take(np.flatnonzero(is_own))), misplaced


class _Evaluation:
    """Fragments over the series of one shard, at one moment of it."""

    def __init__(
        self, view: ShardView, ask: EvaluateAsk, wanted: Wanted, cancellation: Cancellation, few: FewKeys | None
    ) -> None:
        """`few` has the keys of all series, if they are known already."""
        self._view, self._ask, self._wanted, self._cancellation = view, ask, wanted, cancellation
        self._few = few
        self.pinned = view.reader.pinned(ask.within)
        self.samples = 0
        self.lacks_keys = False

    @property
    def part_ids(self) -> U32s:
        """The series."""
        return self._wanted.part_id

    def evaluate(self, fragment: Fragment) -> Partial:
        """The partial result of a fragment within the times of the question."""
        return self._rows(fragment) if fragment.grouping is None else self._groups(fragment, fragment.grouping)

    def first_sample(self, part_ids: BitMap, times: TimeRange) -> int:
        """The time of the first sample that any of some series has; the beginning of the times if one is not known any
        more.
        """
        others = wanted_series(self._view.columns, to_ids(part_ids))
        if len(others.part_id) < len(part_ids):
            return times.first
        heard = SampleCount(self._ask.max_samples, self._cancellation)
        run = self.pinned.read(others.series, times, heard, with_values=False)
        self.samples += run.samples
        return int(run.time.min(initial=times.last + 1))

    def _rows(self, fragment: Fragment) -> Partial:
        """Rows with their keys."""
        fold = RowsFold(fragment)
        for part_ids, values in self._blocks(fragment):
            keys, places = self._keys(part_ids)
            fold.add(keys, values[places])
            check_samples(fold.cells, self._ask.max_samples)
        return fold.partial()

    def _groups(self, fragment: Fragment, grouping: Grouping) -> Partial:
        """The state of an aggregation."""
        wanted = self._wanted
        named = (grouping.labels, grouping.is_without, fragment.drops_name, grouping.value_label)
        found = self._view.groups.of(named, lambda: group_table(fragment), wanted.part_id, self._fetched)
        fold = GroupedFold(fragment, found.keys)
        group_by_id = SortedById(wanted.part_id, found.group_of)
        for part_ids, values in self._blocks(fragment):
            group_of = group_by_id.of(part_ids)
            keys, places = _NO_KEYS, np.flatnonzero(group_of >= 0)
            self.lacks_keys |= len(places) < len(group_of)
            if needs_keys(fragment):
                keys, places = self._keys(part_ids)
            if len(places) == len(values):
                fold.add(keys, values, group_of)
            else:
                fold.add(keys, values[places], group_of[places])
            check_samples(fold.held_bytes // 8, self._ask.max_samples)
        return fold.partial()

    def _blocks(self, fragment: Fragment) -> Iterator[tuple[U32s, F64Matrix]]:
        """The rows of each block of series, with their part ids."""
        ask, times = self._ask, TimeRange(fragment.first, fragment.last)
        most = max(1, min(_BLOCK_SAMPLES, ask.max_samples))
        for block in self.pinned.blocks(self._wanted.series, most, times):
            self._cancellation.check()
            with self._view.turns.taken(self._cancellation.check):
                rows = self._block(fragment, block, times)
            # The samples are let go of: while others have their turns only rows are held.
            yield rows

    def _block(self, fragment: Fragment, block: WantedSeries, times: TimeRange) -> tuple[U32s, F64Matrix]:
        """The rows of a block of series, with their part ids."""
        ask = self._ask
        heard = SampleCount(ask.max_samples, self._cancellation)
        run = self.pinned.read(block, times, heard, with_values=depends_on_values(fragment))
        check_samples(run.samples, ask.max_samples)
        self.samples += run.samples
        return self._wanted.of(run), self._rows_of(fragment, run)

    def _rows_of(self, fragment: Fragment, run: SeriesRun) -> F64Matrix:
        """The rows of a block, part by part."""
        values, rows = canonical_nans(run.value), list[F64Matrix]()
        for part in _parts(fragment, run):
            self._cancellation.check()
            first = run.first_sample[part.start : part.stop + 1]
            here = slice(int(first[0]), int(first[-1]))
            samples = Samples(_NO_KEYS, first - first[0], run.time[here], values[here])
            rows.append(fragment_rows(fragment, samples))
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def _keys(self, part_ids: U32s) -> tuple[KeyBytes, Rows]:
        """The keys of some series, and which of them these are: one that was purged meanwhile has none."""
        batch = self._few if self._few is not None else self._fetched(np.sort(part_ids))
        order = np.argsort(batch.part_ids)
        at = np.searchsorted(batch.part_ids, part_ids, sorter=order)
        there = at < len(batch)
        there[there] = batch.part_ids[order[at[there]]] == part_ids[there]
        self.lacks_keys |= not there.all()
        keys = KeyBytes(batch.offsets.astype(np.int64, copy=False), batch.keys)
        return take_keys(keys, order[at[there]]), np.flatnonzero(there)

    def _fetched(self, part_ids: U32s) -> PartKeyBatch:
        return self._view.catalogue.keys_of(part_ids, step=self._cancellation.check)


def _parts(fragment: Fragment, run: SeriesRun) -> Iterator[slice]:
    """The series of a block in parts, one at least, that are evaluated within some ten milliseconds each: so often it
    is seen whether the answer is still wanted. Smaller blocks would do, too, but what is stored would be read for each.
    """
    ends = fragment.ends
    windows_a_sample = -(-fragment.window // ends.step) if ends.count > 1 and ends.step else 1
    looks = max(1, run.samples * min(windows_a_sample, ends.count))
    series = max(1, min(_PART_CELLS // max(1, ends.count), _PART_LOOKS * len(run) // looks))
    return (slice(first, min(first + series, len(run))) for first in range(0, max(1, len(run)), series))


class SortedById:
    """A number for each of some part ids, to be looked up."""

    def __init__(self, part_ids: U32s, numbers: Rows) -> None:
        order = np.argsort(part_ids)
        self._ids, self._numbers = part_ids[order], numbers[order]

    def of(self, part_ids: U32s) -> Rows:
        """The numbers of ids that are all among those."""
        return self._numbers[np.searchsorted(self._ids, part_ids)]

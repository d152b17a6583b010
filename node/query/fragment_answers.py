"""Evaluates a fragment of a PromQL query in one shard: finds its series, reads them block by block, and folds them.

A series is normally in one shard. A misplaced series, whose key hash belongs to another partition, is left out of the
partial result. Its hash is returned instead, and the front requests the samples of such series from all shards.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap

from strandline.arrays import Bools, Rows, U32s
from strandline.index.bitmaps import to_ids
from strandline.index.catalogue import Catalogue
from strandline.index.documents import KeyList, PartKeyBatch
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.index.part_columns import PartColumns
from strandline.node.query.answers import EvaluateAnswer
from strandline.node.query.cached_steps import evaluate_uncached_steps
from strandline.node.query.fair_semaphore import FairSemaphore
from strandline.node.query.group_numbers import GroupNumbers
from strandline.node.query.key_hashes import is_among
from strandline.node.query.queries import Cancellation
from strandline.node.query.result_cache import ResultCache
from strandline.node.query.sampling import SampleCounter, SelectedSeries, select_series
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.query.shard_requests import EvaluateRequest
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

# Samples of a block, at most: enough that the overhead of a kernel call does not matter.
_BLOCK_SAMPLES = 1 << 20
# Cells of a part of a block, and how often windows visit its samples; about.
_PART_CELLS, _PART_VISITS = 1 << 17, 1 << 24
_NO_KEYS = KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8))


@dataclass(frozen=True, slots=True)
class ShardView:
    """What a fragment is evaluated over, for one request."""

    shard: int
    catalogue: Catalogue
    columns: PartColumns
    reader: ShardReader
    groups: GroupNumbers
    results: ResultCache
    block_semaphore: FairSemaphore
    """Limits the blocks that are read and evaluated at a time, over all requests."""


def evaluate_fragment(
    view: ShardView, request: EvaluateRequest, cancellation: Cancellation, warnings: tuple[str, ...]
) -> EvaluateAnswer:
    """Raises `TooManySeries`, `TooManySamples`, `EvaluationError`, and what `cancellation` raises."""
    part_ids, few = _found(view.catalogue, request)
    check_series(len(part_ids), request.max_series)
    cancellation.check()
    selected = select_series(view.columns, part_ids)
    own, misplaced = _split_misplaced(selected, view.shard, request)
    evaluation = _Evaluation(view, request, own, cancellation, few)
    if warnings:
        # A cached result has no warnings, so an incomplete one must not be cached.
        partial = evaluation.evaluate(request.fragment)
    else:
        partial = evaluate_uncached_steps(evaluation, request.fragment, request.max_samples, view.results)
    return EvaluateAnswer(partial, misplaced, evaluation.samples, warnings)


def _found(catalogue: Catalogue, request: EvaluateRequest) -> tuple[U32s, KeyList | None]:
    """The part ids of the series, ascending, and their keys if they are few: one search finds both."""
    few = catalogue.keys_up_to((request.fragment.matchers,), request.within)
    if few is not None:
        return np.sort(few.part_ids), few
    return to_ids(catalogue.find((request.fragment.matchers,), request.within).part_ids), None


def _split_misplaced(selected: SelectedSeries, shard: int, request: EvaluateRequest) -> tuple[SelectedSeries, bytes]:
    """The series that this shard evaluates, and the hashes of the misplaced series."""
    series = selected.series
    is_own: Bools = series.key_low % np.uint64(request.partitions) == np.uint64(shard)
    misplaced = b""
    if not is_own.all():
        misplaced = np.stack((series.key_low[~is_own], series.key_high[~is_own]), axis=1).astype("<u8").tobytes()
    if request.without:
        is_own &= ~is_among(series.key_low, series.key_high, request.without)
    return (selected if is_own.all() else selected.take(np.flatnonzero(is_own))), misplaced


class _Evaluation:
    """Evaluates fragments over the series of one shard, as of one moment."""

    def __init__(
        self,
        view: ShardView,
        request: EvaluateRequest,
        selected: SelectedSeries,
        cancellation: Cancellation,
        few: KeyList | None,
    ) -> None:
        """`few` has the keys of all series, if they were found with the series."""
        self._view, self._request, self._selected, self._cancellation = view, request, selected, cancellation
        self._few = few
        self.pinned = view.reader.pinned(request.within)
        self.samples = 0
        self.lacks_keys = False

    @property
    def part_ids(self) -> U32s:
        """The series."""
        return self._selected.part_id

    def evaluate(self, fragment: Fragment) -> Partial:
        """The partial result of a fragment within the times of the request."""
        return self._rows(fragment) if fragment.grouping is None else self._groups(fragment, fragment.grouping)

    def first_sample(self, part_ids: BitMap, times: TimeRange) -> int:
        """The time of the first sample of these series; the beginning of `times` if one of them is no longer known."""
        others = select_series(self._view.columns, to_ids(part_ids))
        if len(others.part_id) < len(part_ids):
            return times.first
        counter = SampleCounter(self._request.max_samples, self._cancellation)
        run = self.pinned.read(others.series, times, counter, with_values=False)
        self.samples += run.samples
        return int(run.time.min(initial=times.last + 1))

    def _rows(self, fragment: Fragment) -> Partial:
        """The result of a fragment without an aggregation: rows with their keys."""
        fold = RowsFold(fragment)
        for part_ids, values in self._blocks(fragment):
            keys, known = self._keys(part_ids)
            fold.add(keys, values[known])
            check_samples(fold.cells, self._request.max_samples)
        return fold.partial()

    def _groups(self, fragment: Fragment, grouping: Grouping) -> Partial:
        """The result of a fragment with an aggregation: its state."""
        selected = self._selected
        grouping_key = (grouping.labels, grouping.is_without, fragment.drops_name, grouping.value_label)
        found = self._view.groups.of(grouping_key, lambda: group_table(fragment), selected.part_id, self._fetched)
        fold = GroupedFold(fragment, found.keys)
        group_by_id = SortedById(selected.part_id, found.group_of)
        for part_ids, values in self._blocks(fragment):
            group_of = group_by_id.of(part_ids)
            keys, known = _NO_KEYS, np.flatnonzero(group_of >= 0)
            self.lacks_keys |= len(known) < len(group_of)
            if needs_keys(fragment):
                keys, known = self._keys(part_ids)
            if len(known) == len(values):
                fold.add(keys, values, group_of)
            else:
                fold.add(keys, values[known], group_of[known])
            check_samples(fold.held_bytes // 8, self._request.max_samples)
        return fold.partial()

    def _blocks(self, fragment: Fragment) -> Iterator[tuple[U32s, F64Matrix]]:
        """The rows of each block of series, with their part ids."""
        request, times = self._request, TimeRange(fragment.first, fragment.last)
        max_samples = max(1, min(_BLOCK_SAMPLES, request.max_samples))
        for block in self.pinned.blocks(self._selected.series, max_samples, times):
            self._cancellation.check()
            with self._view.block_semaphore.acquired(self._cancellation.check):
                rows = self._block(fragment, block, times)
            # Here the samples of the block are freed: without a permit, only rows are held.
            yield rows

    def _block(self, fragment: Fragment, block: WantedSeries, times: TimeRange) -> tuple[U32s, F64Matrix]:
        """The rows of a block of series, with their part ids."""
        request = self._request
        counter = SampleCounter(request.max_samples, self._cancellation)
        run = self.pinned.read(block, times, counter, with_values=depends_on_values(fragment))
        check_samples(run.samples, request.max_samples)
        self.samples += run.samples
        return self._selected.of(run), self._rows_of(fragment, run)

    def _rows_of(self, fragment: Fragment, run: SeriesRun) -> F64Matrix:
        """The rows of a block, evaluated part by part."""
        values, rows = canonical_nans(run.value), list[F64Matrix]()
        for part in _parts(fragment, run):
            self._cancellation.check()
            first = run.first_sample[part.start : part.stop + 1]
            of_part = slice(int(first[0]), int(first[-1]))
            samples = Samples(_NO_KEYS, first - first[0], run.time[of_part], values[of_part])
            rows.append(fragment_rows(fragment, samples))
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def _keys(self, part_ids: U32s) -> tuple[KeyBytes, Rows]:
        """The keys of these series, and the positions of those that have one: a series purged meanwhile has none."""
        batch = self._few if self._few is not None else self._fetched(np.sort(part_ids))
        order = np.argsort(batch.part_ids)
        at = np.searchsorted(batch.part_ids, part_ids, sorter=order)
        has_key = at < len(batch)
        has_key[has_key] = batch.part_ids[order[at[has_key]]] == part_ids[has_key]
        self.lacks_keys |= not has_key.all()
        keys = KeyBytes(batch.offsets.astype(np.int64, copy=False), batch.keys)
        return take_keys(keys, order[at[has_key]]), np.flatnonzero(has_key)

    def _fetched(self, part_ids: U32s) -> PartKeyBatch:
        return self._view.catalogue.keys_of(part_ids, step=self._cancellation.check)


def _parts(fragment: Fragment, run: SeriesRun) -> Iterator[slice]:
    """The series of a block in parts, at least one, that take some ten milliseconds each: cancellation is checked
    between parts. Smaller blocks would have the same effect, but each would read the stored data again.
    """
    ends = fragment.ends
    windows_a_sample = -(-fragment.window // ends.step) if ends.count > 1 and ends.step else 1
    visits = max(1, run.samples * min(windows_a_sample, ends.count))
    series = max(1, min(_PART_CELLS // max(1, ends.count), _PART_VISITS * len(run) // visits))
    return (slice(first, min(first + series, len(run))) for first in range(0, max(1, len(run)), series))


class SortedById:
    """A lookup table from part ids to numbers."""

    def __init__(self, part_ids: U32s, numbers: Rows) -> None:
        order = np.argsort(part_ids)
        self._ids, self._numbers = part_ids[order], numbers[order]

    def of(self, part_ids: U32s) -> Rows:
        """The numbers of part ids, which must all be in the table."""
        return self._numbers[np.searchsorted(self._ids, part_ids)]

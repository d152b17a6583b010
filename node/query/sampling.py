"""Reads the samples of the series that a selector matches, in one shard."""

import threading
from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows, U32s
from strandline.index.bitmaps import to_ids
from strandline.index.catalogue import Catalogue, Found
from strandline.index.documents import KeyList, PartKeyBatch
from strandline.index.key_bytes import KeyBytes, label_order, take_keys
from strandline.index.part_columns import PartColumns
from strandline.node.query.answers import SamplesAnswer
from strandline.node.query.kernels.joining import positions_in
from strandline.node.query.key_hashes import is_among
from strandline.node.query.queries import Cancellation
from strandline.node.query.sampling_limits import check_samples, check_series
from strandline.node.query.shard_requests import CardinalityRequest, SamplesRequest
from strandline.node.shard.reader import ShardReader
from strandline.store.kernels.timetables import copy_runs
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import ALL_TIMES

Keys = PartKeyBatch | KeyList

# While samples are read, each source's are counted, and a sample may be in two sources: in the buffer and, stored just
# now, in a segment. So reading stops at twice the limit, and the distinct samples are counted at the end.
_COUNTED_TWICE = 2
# The keys of all found series are fetched if at most this many times as many series were found as have samples.
_MAX_FOUND_PER_READ = 4


class SampleCounter:
    """Counts samples while they are read. Raises above the limit, or if the query is cancelled. Thread-safe."""

    def __init__(self, limit: int, cancellation: Cancellation) -> None:
        self._limit, self._cancellation = limit, cancellation
        self._lock = threading.Lock()
        self._found = 0

    def __call__(self, samples: int) -> None:
        self._cancellation.check()
        with self._lock:
            self._found += samples
            found = self._found
        if found > _COUNTED_TWICE * self._limit:
            # Even if every sample was counted twice, there are at least this many.
            check_samples(-(-found // _COUNTED_TWICE), self._limit, at_least=True)


@dataclass(frozen=True, slots=True)
class SelectedSeries:
    """Series in the order of metric and key hash, and the part id of each."""

    series: WantedSeries
    part_id: U32s

    def take(self, positions: Rows) -> "SelectedSeries":
        """The series at these positions, which are ascending."""
        series = self.series
        chosen = WantedSeries(series.metric[positions], series.key_high[positions], series.key_low[positions])
        return SelectedSeries(chosen, self.part_id[positions])

    def of(self, run: SeriesRun) -> U32s:
        """The part ids of the series of a run, which must all be among these."""
        positions, mine = np.empty(len(run), dtype=np.int64), self.series
        positions_in(run.metric, run.key_high, run.key_low, mine.metric, mine.key_high, mine.key_low, positions)
        return self.part_id[positions]


def read_samples(
    catalogue: Catalogue,
    columns: PartColumns,
    reader: ShardReader,
    request: SamplesRequest,
    cancellation: Cancellation,
    *,
    warnings: tuple[str, ...],
) -> SamplesAnswer:
    """Find the series, read their samples, and add the keys."""
    found = _find(catalogue, request)
    check_series(len(found.part_ids), request.max_series)
    cancellation.check()
    selected = select_series(columns, to_ids(found.part_ids) if isinstance(found, Found) else np.sort(found.part_ids))
    if request.only:
        selected = selected.take(
            np.flatnonzero(is_among(selected.series.key_low, selected.series.key_high, request.only))
        )
    run = reader.read(selected.series, request.within, SampleCounter(request.max_samples, cancellation))
    check_samples(run.samples, request.max_samples)
    cancellation.check()
    part_ids = selected.of(run)
    return _in_label_order(_keys_of(catalogue, found, part_ids, cancellation), part_ids, run, warnings)


def estimated_samples(
    catalogue: Catalogue, columns: PartColumns, reader: ShardReader, request: CardinalityRequest
) -> int:
    """An estimate of the samples of the request's series in its range, from the manifest and the buffers."""
    within = request.within if request.within is not None else ALL_TIMES
    selected = select_series(columns, to_ids(catalogue.find(request.selectors, request.within).part_ids))
    return reader.pinned(within).estimated_samples(selected.series)


def _find(catalogue: Catalogue, request: SamplesRequest) -> Found | KeyList:
    """The series. If they are few, one search finds their keys as well."""
    few = catalogue.keys_up_to((request.selector,), request.within)
    return few if few is not None else catalogue.find((request.selector,), request.within)


def select_series(columns: PartColumns, part_ids: U32s) -> SelectedSeries:
    """The series of these part ids, which are ascending."""
    known = columns.rows
    rows = known.rows_of(part_ids)
    # A series purged meanwhile has no row.
    rows = rows[rows >= 0]
    metric, key_high, key_low = known.metric[rows], known.key_high[rows], known.key_low[rows]
    order = np.lexsort((key_low, key_high, metric))
    return SelectedSeries(WantedSeries(metric[order], key_high[order], key_low[order]), known.part_id[rows][order])


def _keys_of(catalogue: Catalogue, found: Found | KeyList, part_ids: U32s, cancellation: Cancellation) -> Keys:
    """The keys of the series that have samples, in the order of their part ids."""
    batch: Keys
    if isinstance(found, KeyList):
        batch = found
    elif _MAX_FOUND_PER_READ * len(part_ids) >= len(found.part_ids):
        batch = catalogue.keys(found, step=cancellation.check)
    else:
        batch = catalogue.keys_of(np.sort(part_ids), step=cancellation.check)
    # Even equal numbers may be different series: Lucene may lack some with samples, and have others without.
    wanted = np.isin(batch.part_ids, part_ids)
    positions = np.flatnonzero(wanted)
    return batch.take(positions[np.argsort(batch.part_ids[wanted])])


def _in_label_order(batch: Keys, part_ids: U32s, run: SeriesRun, warnings: tuple[str, ...]) -> SamplesAnswer:
    """The run in the order of the labels. A series purged meanwhile has no key, and is left out."""
    at = np.searchsorted(batch.part_ids, part_ids)
    series = np.arange(len(run))
    if len(batch) < len(run):
        has_key = at < len(batch)
        has_key[has_key] = batch.part_ids[at[has_key]] == part_ids[has_key]
        series, at = series[has_key], at[has_key]
    keys = KeyBytes(batch.offsets.astype(np.int64), batch.keys)
    # `at` has each key of the batch once, so this orders all series.
    by_labels = label_order(keys)
    series_of_key = np.empty(len(batch), dtype=np.int64)
    series_of_key[at] = series
    return _in_order(run, series_of_key[by_labels], take_keys(keys, by_labels), warnings)


def _in_order(run: SeriesRun, series: Rows, keys: KeyBytes, warnings: tuple[str, ...]) -> SamplesAnswer:
    starts, ends = run.first_sample[series], run.first_sample[series + 1]
    first = np.zeros(len(series) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=first[1:])
    time, value = np.empty(first[-1], dtype=np.int64), np.empty(first[-1], dtype=np.float64)
    copy_runs(run.time, starts, ends, time)
    copy_runs(run.value, starts, ends, value)
    return SamplesAnswer(keys, first, time, value, warnings)

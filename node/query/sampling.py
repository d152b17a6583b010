"""The samples of the series that a selector matches, in one shard."""

import threading
from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows, U32s
from strandline.index.bitmaps import to_ids
from strandline.index.catalogue import Catalogue, Found
from strandline.index.documents import FewKeys, PartKeyBatch
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

Keys = PartKeyBatch | FewKeys

# While samples are read they are counted piece by piece, and a sample may be in two pieces: in the buffer and, stored a
# moment ago, in a segment. So reading is given up at twice the limit, and what is left is counted in the end.
_SLACK = 2
# Keys are looked up as the series were, if not many more series were found than have samples.
_MOST_LACKING = 4


class SampleCounter:
    """Hears how many samples were found, from any thread, and ends the reading where it must end."""

    def __init__(self, most: int, cancellation: Cancellation) -> None:
        self._most, self._cancellation = most, cancellation
        self._lock = threading.Lock()
        self._found = 0

    def __call__(self, samples: int) -> None:
        self._cancellation.check()
        with self._lock:
            self._found += samples
            found = self._found
        if found > _SLACK * self._most:
            # Each of them once, however many were seen twice.
            check_samples(-(-found // _SLACK), self._most, at_least=True)


@dataclass(frozen=True, slots=True)
class SelectedSeries:
    """Series in the order of their hashes, and the part id of each."""

    series: WantedSeries
    part_id: U32s

    def take(self, places: Rows) -> "SelectedSeries":
        """Some of them, at places that rise."""
        series = self.series
        chosen = WantedSeries(series.metric[places], series.key_high[places], series.key_low[places])
        return SelectedSeries(chosen, self.part_id[places])

    def of(self, run: SeriesRun) -> U32s:
        """The part ids of a run's series, which are all among these."""
        places, mine = np.empty(len(run), dtype=np.int64), self.series
        positions_in(run.metric, run.key_high, run.key_low, mine.metric, mine.key_high, mine.key_low, places)
        return self.part_id[places]


def read_samples(
    catalogue: Catalogue,
    columns: PartColumns,
    reader: ShardReader,
    request: SamplesRequest,
    cancellation: Cancellation,
    *,
    warnings: tuple[str, ...],
) -> SamplesAnswer:
    """Find the series, read their samples, and put the keys to them."""
    found = _find(catalogue, request)
    check_series(len(found.part_ids), request.max_series)
    cancellation.check()
    wanted = select_series(columns, to_ids(found.part_ids) if isinstance(found, Found) else np.sort(found.part_ids))
    if request.only:
        wanted = wanted.take(np.flatnonzero(is_among(wanted.series.key_low, wanted.series.key_high, request.only)))
    run = reader.read(wanted.series, request.within, SampleCounter(request.max_samples, cancellation))
    check_samples(run.samples, request.max_samples)
    cancellation.check()
    part_ids = wanted.of(run)
    return _named(_keys_of(catalogue, found, part_ids, cancellation), part_ids, run, warnings)


def estimated_samples(
    catalogue: Catalogue, columns: PartColumns, reader: ShardReader, request: CardinalityRequest
) -> int:
    """About how many samples the series of a question have in its range, by the manifest and the buffers."""
    within = request.within if request.within is not None else ALL_TIMES
    wanted = select_series(columns, to_ids(catalogue.find(request.selectors, request.within).part_ids))
    return reader.pinned(within).estimated_samples(wanted.series)


def _find(catalogue: Catalogue, request: SamplesRequest) -> Found | FewKeys:
    """The series that are asked for. Of a few, one search finds the keys as well."""
    few = catalogue.few_keys((request.selector,), request.within)
    return few if few is not None else catalogue.find((request.selector,), request.within)


def select_series(columns: PartColumns, part_ids: U32s) -> SelectedSeries:
    """The series of some part ids, which rise."""
    known = columns.rows
    rows = known.rows_of(part_ids)
    # One that was purged just now has no row any more.
    rows = rows[rows >= 0]
    metric, key_high, key_low = known.metric[rows], known.key_high[rows], known.key_low[rows]
    order = np.lexsort((key_low, key_high, metric))
    return SelectedSeries(WantedSeries(metric[order], key_high[order], key_low[order]), known.part_id[rows][order])


def _keys_of(catalogue: Catalogue, found: Found | FewKeys, part_ids: U32s, cancellation: Cancellation) -> Keys:
    """The keys of the series that have samples, in the order of their ids."""
    batch: Keys
    if isinstance(found, FewKeys):
        batch = found
    elif _MOST_LACKING * len(part_ids) >= len(found.part_ids):
        batch = catalogue.keys(found, step=cancellation.check)
    else:
        batch = catalogue.keys_of(np.sort(part_ids), step=cancellation.check)
    # Equally many need not be the same ones: Lucene may lack some that have samples, and know others that have none.
    wanted = np.isin(batch.part_ids, part_ids)
    places = np.flatnonzero(wanted)
    return batch.take(places[np.argsort(batch.part_ids[wanted])])


def _named(batch: Keys, part_ids: U32s, run: SeriesRun, warnings: tuple[str, ...]) -> SamplesAnswer:
    """The run in the order of the labels. A series whose key was purged meanwhile is left out."""
    at = np.searchsorted(batch.part_ids, part_ids)
    series = np.arange(len(run))
    if len(batch) < len(run):
        there = at < len(batch)
        there[there] = batch.part_ids[at[there]] == part_ids[there]
        series, at = series[there], at[there]
    keys = KeyBytes(batch.offsets.astype(np.int64), batch.keys)
    # `at` has each key of the batch once, so that this is the order of all of them.
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

"""Slices ordered by hash are sorted by labels, in memory and with files."""

import numpy as np
import pytest

from strandline.index.documents import encode_part_key
from strandline.jobs.exporting.label_sort import LabelSort
from strandline.jobs.reading.series_reading import SeriesSlice
from strandline.jobs.reading.series_set import LabelBytes, SeriesSet
from strandline.jobs.reading.series_task import SeriesTask
from strandline.store.series_run import SeriesRun
from strandline.time_range import ALL_TIMES

pytestmark = pytest.mark.unit

SERIES = 20


def task() -> SeriesTask:
    encoded = [encode_part_key({"__name__": f"m{number:02d}"}) for number in range(SERIES)]
    labels = LabelBytes.of_part_keys(
        np.cumsum([0, *map(len, encoded)]), np.frombuffer(b"".join(encoded), dtype=np.uint8)
    )
    hashes, times = np.arange(SERIES, dtype=np.uint64), np.zeros(SERIES, dtype=np.int64)
    series = SeriesSet(labels, hashes, hashes, hashes, times, times, np.zeros(SERIES, dtype=np.uint32), ((0,),))
    return SeriesTask("metrics", 4, series, np.ones(SERIES), ALL_TIMES, ())


@pytest.mark.parametrize("at_once", [1, 7, 30, 10_000])
def test_slices_come_out_in_the_order_of_labels(at_once: int) -> None:
    random = np.random.default_rng(at_once)
    order = random.permutation(SERIES)
    given = task()
    with LabelSort(given.series, at_once) as sort:
        for numbers in np.split(order, [3, 4, 11]):
            # The last series has no samples.
            kept = numbers[numbers != SERIES - 1]
            counts = kept + 1
            first = np.append(0, np.cumsum(counts))
            hashes = kept.astype(np.uint64)
            time = np.concatenate([np.arange(count) for count in counts]) if len(kept) else np.empty(0, dtype=np.int64)
            value = np.repeat(kept, counts) + time / 1000
            sort.add(SeriesSlice(given, kept, SeriesRun(hashes, hashes, hashes, first, time, value)))
        pieces = list(sort.sorted())
        found = [
            (piece.labels.data[piece.labels.offsets[at] :][12:15].tobytes().decode(), time, value)
            for piece in pieces
            for at in range(len(piece.labels))
            for time, value in zip(
                piece.time[piece.first_sample[at] : piece.first_sample[at + 1]].tolist(),
                piece.value[piece.first_sample[at] : piece.first_sample[at + 1]].tolist(),
                strict=True,
            )
        ]
    assert found == [
        (f"m{number:02d}", time, number + time / 1000) for number in range(SERIES - 1) for time in range(number + 1)
    ]
    assert max(len(piece.time) for piece in pieces) <= at_once + SERIES

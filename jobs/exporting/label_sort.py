"""Samples that come in the order of hashes, put into the order of labels, with a bounded number of them in memory.

Each slice that comes in is sorted by itself. Beyond a limit slices are kept in a file of this machine, from which each
piece of the sorted whole is read again: 16 bytes a sample, written once and read once.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strandline.arrays import F64s, I64s, Rows, run_offsets
from strandline.disk import raising_disk_full
from strandline.jobs.reading.arrow_batches import SampleColumns
from strandline.jobs.reading.kernels.labels import copy_series
from strandline.jobs.reading.series_reading import SAMPLES_AT_ONCE, SeriesSlice
from strandline.jobs.reading.series_set import SeriesSet
from strandline.jobs.reading.series_task import pieces


@dataclass(frozen=True, slots=True)
class _Samples:
    """Times and values in memory."""

    time: I64s
    value: F64s

    def between(self, begin: int, end: int) -> "_Samples":
        return _Samples(self.time[begin:end], self.value[begin:end])


@dataclass(frozen=True, slots=True)
class _FiledSamples:
    """Times, and values behind them, in a file. It is read and not mapped: mapped pages would count as memory."""

    path: Path
    samples: int

    def between(self, begin: int, end: int) -> _Samples:
        return _Samples(
            np.fromfile(self.path, dtype=np.int64, count=end - begin, offset=8 * begin),
            np.fromfile(self.path, dtype=np.float64, count=end - begin, offset=8 * (self.samples + begin)),
        )


@dataclass(frozen=True, slots=True)
class _SortedSlice:
    """A slice in the order of its series' ranks."""

    ranks: Rows
    first_sample: I64s
    samples: _Samples | _FiledSamples

    def between(self, first: int, behind: int) -> "tuple[Rows, I64s, _Samples] | None":
        """The series with ranks from `first` up to, not including, `behind`, how many samples each has, and these."""
        begin, end = np.searchsorted(self.ranks, [first, behind])
        if begin == end:
            return None
        ends = self.first_sample[begin : end + 1]
        return self.ranks[begin:end], np.diff(ends), self.samples.between(int(ends[0]), int(ends[-1]))


class LabelSort:
    """Sorts slices of a task whose series are in the order of their labels. Use it in a `with` block."""

    def __init__(self, series: SeriesSet, at_once: int = SAMPLES_AT_ONCE) -> None:
        self._series, self._at_once = series, at_once
        self._counts = np.zeros(len(series), dtype=np.int64)
        self._slices: list[_SortedSlice] = []
        self._samples = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> "LabelSort":
        return self

    def __exit__(self, *_error: object) -> None:
        self._slices.clear()
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, part: SeriesSlice) -> None:
        """Take a slice."""
        run, order = part.run, np.argsort(part.places)
        counts = np.diff(run.first_sample)[order]
        time, value = np.empty(run.samples, dtype=np.int64), np.empty(run.samples, dtype=np.float64)
        copy_series(order, run.first_sample, run.time, run.value, time, value)
        ranks = part.places[order]
        self._counts[ranks] += counts
        self._samples += run.samples
        self._slices.append(_SortedSlice(ranks, run_offsets(counts), self._kept(_Samples(time, value))))

    def sorted(self) -> Iterator[SampleColumns]:
        """All samples in the order of labels and time, in pieces."""
        for first, behind in pieces(self._counts.astype(np.float64), self._at_once):
            found = [part for one in self._slices if (part := one.between(first, behind)) is not None]
            if found:
                yield self._joined(found)

    def _joined(self, parts: list[tuple[Rows, I64s, _Samples]]) -> SampleColumns:
        ranks, counts = (np.concatenate([part[place] for part in parts]) for place in (0, 1))
        time = np.concatenate([samples.time for _, _, samples in parts])
        value = np.concatenate([samples.value for _, _, samples in parts])
        order = np.argsort(ranks)
        if len(parts) > 1:
            sorted_time, sorted_value = np.empty_like(time), np.empty_like(value)
            copy_series(order, run_offsets(counts), time, value, sorted_time, sorted_value)
            time, value = sorted_time, sorted_value
        return SampleColumns(self._series.labels.take(ranks[order]), run_offsets(counts[order]), time, value)

    def _kept(self, samples: _Samples) -> _Samples | _FiledSamples:
        if self._samples <= self._at_once:
            return samples
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="strandline-export-")
        path = Path(self._folder.name) / f"{len(self._slices)}.slice"
        with raising_disk_full(path), path.open("wb") as file:
            samples.time.tofile(file)
            samples.value.tofile(file)
        return _FiledSamples(path, len(samples.time))

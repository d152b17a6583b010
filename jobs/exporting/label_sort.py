"""Sorts samples by labels that arrive in the order of hashes, with a limited number of samples in memory.

An external merge sort: each slice is sorted on arrival. Above the limit, slices are spilled to local files, from which
each piece of the result is read: 16 bytes per sample, written once and read once.
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
from strandline.jobs.reading.series_reading import SLICE_SAMPLES, SeriesSlice
from strandline.jobs.reading.series_set import SeriesSet
from strandline.jobs.reading.series_task import series_ranges


@dataclass(frozen=True, slots=True)
class _Samples:
    """Times and values in memory."""

    time: I64s
    value: F64s

    def between(self, begin: int, end: int) -> "_Samples":
        return _Samples(self.time[begin:end], self.value[begin:end])


@dataclass(frozen=True, slots=True)
class _SpilledSamples:
    """A file with the times, followed by the values. Not memory-mapped, because mapped pages count as memory."""

    path: Path
    samples: int

    def between(self, begin: int, end: int) -> _Samples:
        return _Samples(
            np.fromfile(self.path, dtype=np.int64, count=end - begin, offset=8 * begin),
            np.fromfile(self.path, dtype=np.float64, count=end - begin, offset=8 * (self.samples + begin)),
        )


@dataclass(frozen=True, slots=True)
class _SortedSlice:
    """A slice, sorted by the ranks of its series."""

    ranks: Rows
    first_sample: I64s
    samples: _Samples | _SpilledSamples

    def between(self, first: int, stop: int) -> "tuple[Rows, I64s, _Samples] | None":
        """The ranks from `first` to `stop` (exclusive) in this slice, their numbers of samples, and the samples."""
        begin, end = np.searchsorted(self.ranks, [first, stop])
        if begin == end:
            return None
        ends = self.first_sample[begin : end + 1]
        return self.ranks[begin:end], np.diff(ends), self.samples.between(int(ends[0]), int(ends[-1]))


class LabelSort:
    """Sorts the slices of a task whose series are ordered by labels. A context manager."""

    def __init__(self, series: SeriesSet, max_in_memory: int = SLICE_SAMPLES) -> None:
        self._series, self._max_in_memory = series, max_in_memory
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
        """Add a slice."""
        run, order = part.run, np.argsort(part.indices)
        counts = np.diff(run.first_sample)[order]
        time, value = np.empty(run.samples, dtype=np.int64), np.empty(run.samples, dtype=np.float64)
        copy_series(order, run.first_sample, run.time, run.value, time, value)
        ranks = part.indices[order]
        self._counts[ranks] += counts
        self._samples += run.samples
        self._slices.append(_SortedSlice(ranks, run_offsets(counts), self._keep_or_spill(_Samples(time, value))))

    def sorted(self) -> Iterator[SampleColumns]:
        """All samples, ordered by labels and time, in pieces."""
        for first, stop in series_ranges(self._counts.astype(np.float64), self._max_in_memory):
            found = [part for one in self._slices if (part := one.between(first, stop)) is not None]
            if found:
                yield self._joined(found)

    def _joined(self, parts: list[tuple[Rows, I64s, _Samples]]) -> SampleColumns:
        ranks, counts = (np.concatenate([part[column] for part in parts]) for column in (0, 1))
        time = np.concatenate([samples.time for _, _, samples in parts])
        value = np.concatenate([samples.value for _, _, samples in parts])
        order = np.argsort(ranks)
        if len(parts) > 1:
            sorted_time, sorted_value = np.empty_like(time), np.empty_like(value)
            copy_series(order, run_offsets(counts), time, value, sorted_time, sorted_value)
            time, value = sorted_time, sorted_value
        return SampleColumns(self._series.labels.take(ranks[order]), run_offsets(counts[order]), time, value)

    def _keep_or_spill(self, samples: _Samples) -> _Samples | _SpilledSamples:
        if self._samples <= self._max_in_memory:
            return samples
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="strandline-export-")
        path = Path(self._folder.name) / f"{len(self._slices)}.slice"
        with raising_disk_full(path), path.open("wb") as file:
            samples.time.tofile(file)
            samples.value.tofile(file)
        return _SpilledSamples(path, len(samples.time))

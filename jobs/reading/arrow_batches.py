"""Samples as Arrow columns: metric, labels, time, value. Labels are dictionary-encoded once per series."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from strandline.arrays import F64s, I64s
from strandline.jobs.reading.kernels.labels import count_labels, label_spans, repeat_labels
from strandline.jobs.reading.matching import string_array
from strandline.jobs.reading.series_reading import SeriesSlice
from strandline.jobs.reading.series_set import LabelBytes

ROWS_PER_BATCH = 1 << 18
_NUMBERED = pa.dictionary(pa.int32(), pa.string())

DICTIONARY_SCHEMA = pa.schema(
    [
        ("metric", _NUMBERED),
        ("labels", pa.map_(_NUMBERED, _NUMBERED)),
        ("time", pa.timestamp("ms", tz="UTC")),
        ("value", pa.float64()),
    ]
)
"""With dictionary-encoded strings, for writing Parquet."""

PLAIN_SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("time", pa.timestamp("us", tz="UTC")),
        ("value", pa.float64()),
    ]
)
"""With plain strings and microseconds, as Spark requires of a Python data source."""


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Samples ordered by series: those of series i are from `first_sample[i]` to `first_sample[i + 1]` (exclusive)."""

    labels: LabelBytes
    first_sample: I64s
    time: I64s
    value: F64s

    @classmethod
    def of(cls, part: SeriesSlice) -> "SampleColumns":
        """The samples of a slice, in its order."""
        return cls(part.labels(), part.run.first_sample, part.run.time, part.run.value)


def dictionary_batches(columns: SampleColumns, rows: int = ROWS_PER_BATCH) -> Iterator[pa.RecordBatch]:
    """Batches of about `rows` samples, in order, with `DICTIONARY_SCHEMA`."""
    for first, stop, part in _parts(columns, rows):
        labels = _Labels.of(columns.labels.take(np.arange(first, stop)))
        metrics, maps = labels.repeated(np.diff(part.first_sample))
        yield pa.RecordBatch.from_arrays(
            [metrics, maps, pa.array(part.time).cast(DICTIONARY_SCHEMA.field("time").type), pa.array(part.value)],
            schema=DICTIONARY_SCHEMA,
        )


def plain_batches(columns: SampleColumns, rows: int = ROWS_PER_BATCH) -> Iterator[pa.RecordBatch]:
    """Like `dictionary_batches`, with `PLAIN_SCHEMA`."""
    for first, stop, part in _parts(columns, rows):
        labels = _Labels.of(columns.labels.take(np.arange(first, stop)))
        counts = np.diff(part.first_sample)
        series = pa.array(np.repeat(np.arange(len(counts), dtype=np.int32), counts))
        yield pa.RecordBatch.from_arrays(
            [
                labels.metrics.dictionary_decode().take(series),
                labels.maps().take(series),
                pa.array(part.time * 1000).cast(PLAIN_SCHEMA.field("time").type),
                pa.array(part.value),
            ],
            schema=PLAIN_SCHEMA,
        )


@dataclass(frozen=True, slots=True)
class _Samples:
    first_sample: I64s
    time: I64s
    value: F64s


def _parts(columns: SampleColumns, rows: int) -> Iterator[tuple[int, int, _Samples]]:
    """Ranges of series (start, exclusive stop) with about `rows` samples. A series with more is divided."""
    first, sample = 0, 0
    ends = columns.first_sample
    while sample < ends[-1]:
        stop = int(np.searchsorted(ends, sample + rows, side="right")) - 1
        end = int(ends[stop]) if stop > first else min(sample + rows, int(ends[first + 1]))
        stop = max(stop, first + 1)
        yield (
            first,
            stop,
            _Samples(
                ends[first : stop + 1].clip(sample, end) - sample,
                columns.time[sample:end],
                columns.value[sample:end],
            ),
        )
        sample = end
        first = int(np.searchsorted(ends, sample, side="right")) - 1


@dataclass(frozen=True, slots=True)
class _Labels:
    """Dictionary-encoded labels: those of series i are from `first_label[i]` to `first_label[i + 1]` (exclusive)."""

    metrics: pa.DictionaryArray
    first_label: npt.NDArray[np.int32]
    names: pa.DictionaryArray
    values: pa.DictionaryArray

    @classmethod
    def of(cls, labels: LabelBytes) -> "_Labels":
        counts = np.empty(len(labels), dtype=np.int64)
        count_labels(labels.data, labels.offsets, counts)
        # Without the metric.
        first_label = np.append(0, np.cumsum(counts - 1)).astype(np.int32)
        metrics = np.empty((len(labels), 2), dtype=np.int64)
        names, values = (np.empty((int(first_label[-1]), 2), dtype=np.int64) for _ in range(2))
        label_spans(labels.data, labels.offsets, metrics, names, values)
        return cls(
            string_array(labels.data, metrics).dictionary_encode(),
            first_label,
            string_array(labels.data, names).dictionary_encode(),
            string_array(labels.data, values).dictionary_encode(),
        )

    def maps(self) -> pa.MapArray:
        """The labels of each series."""
        return pa.MapArray.from_arrays(
            pa.array(self.first_label), self.names.dictionary_decode(), self.values.dictionary_decode()
        )

    def repeated(self, counts: I64s) -> tuple[pa.DictionaryArray, pa.MapArray]:
        """Metric and labels for each sample; `counts` are the numbers of samples of the series."""
        samples, labels = int(counts.sum()), int((np.diff(self.first_label) * counts).sum())
        first = np.empty(samples + 1, dtype=np.int32)
        names, values = np.empty(labels, dtype=np.int32), np.empty(labels, dtype=np.int32)
        repeat_labels(
            self.first_label,
            counts,
            np.asarray(self.names.indices),
            np.asarray(self.values.indices),
            first,
            names,
            values,
        )
        metrics = np.repeat(np.asarray(self.metrics.indices), counts)
        maps = pa.MapArray.from_arrays(
            pa.array(first),
            pa.DictionaryArray.from_arrays(pa.array(names), self.names.dictionary),
            pa.DictionaryArray.from_arrays(pa.array(values), self.values.dictionary),
        )
        return pa.DictionaryArray.from_arrays(pa.array(metrics), self.metrics.dictionary), maps

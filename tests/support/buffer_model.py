"""A write buffer and a model of it: dictionaries of the expected content, fed with the same records."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.spill import SpillFolder
from strandline.store.buffer.write_buffer import REFUSED, WriteBuffer
from strandline.store.series_run import SeriesKeys, SeriesRun

Key = tuple[int, int, int]  # Metric, high and low half of the key's hash.
Samples = Sequence[tuple[int, int]]  # Times, and the bits of values.
Record = Sequence[tuple[Key | None, Samples]]  # None: the series limit refused it.
Model = dict[Key, dict[int, int]]

PLENTY = 1 << 40


def budget(folder: Path, *, memory: int = PLENTY, spill: int = PLENTY) -> MemoryBudget:
    """A budget with its own, empty spill folder."""
    where = SpillFolder(folder / "spill", spill)
    where.clear()
    return MemoryBudget(memory, where)


def samples_of(run: SeriesRun) -> Model:
    """A run as a model. Also checks the guarantees of `SeriesRun`."""
    keys = list(zip(run.metric.tolist(), run.key_high.tolist(), run.key_low.tolist(), strict=True))
    assert keys == sorted(set(keys)), "series are not in order, or one occurs twice"
    bounds = run.first_sample.tolist()
    assert len(bounds) == len(keys) + 1
    assert (bounds[0], bounds[-1]) == (0, len(run.time))
    assert len(run.time) == len(run.value)
    model: Model = {}
    for key, first, behind in zip(keys, bounds, bounds[1:], strict=False):
        times = run.time[first:behind].tolist()
        assert times, f"series {key} has no sample"
        assert times == sorted(set(times)), f"times of {key} do not rise"
        model[key] = dict(zip(times, run.value[first:behind].view(np.uint64).tolist(), strict=True))
    return model


def key_columns(keys: Iterable[Key]) -> SeriesKeys:
    """Keys as columns."""
    columns = np.array(list(keys), dtype=np.uint64).reshape(-1, 3)
    return SeriesKeys(*(np.ascontiguousarray(columns[:, part]) for part in range(3)))


def within(model: Mapping[Key, Mapping[int, int]], first: int, last: int) -> Model:
    """The samples of a model in a time range, both ends included."""
    found = {key: {time: bits for time, bits in some.items() if first <= time <= last} for key, some in model.items()}
    return {key: some for key, some in found.items() if some}


class FedBuffer:
    """A write buffer that numbers keys as a shard does, and the model of its content."""

    def __init__(self, memory: MemoryBudget, *, bucket: int = 7, groups: int = 4, seal_rows: int = 8) -> None:
        self.buffer = WriteBuffer(bucket, groups, memory, seal_rows=seal_rows)
        self.groups = groups
        self.model: Model = {}
        self.fed = 0  # Samples, duplicates included.
        self._numbers: dict[Key, int] = {}

    def feed(self, record: Record) -> None:
        """Append a record. Overwrites the input arrays afterwards, as a decoder does."""
        new = [key for key in dict.fromkeys(key for key, _ in record) if key is not None and key not in self._numbers]
        if new:
            columns = key_columns(new)
            self.buffer.define(columns.metric, columns.key_high, columns.key_low)
            self._numbers.update({key: len(self._numbers) + place for place, key in enumerate(new)})
        series = np.array([REFUSED if key is None else self._numbers[key] for key, _ in record], dtype=np.uint32)
        first_sample = np.zeros(len(record) + 1, dtype=np.int64)
        np.cumsum([len(samples) for _, samples in record], out=first_sample[1:])
        time = np.array([time for _, samples in record for time, _ in samples], dtype=np.int64)
        bits = np.array([bits for _, samples in record for _, bits in samples], dtype=np.uint64)
        for key, samples in record:
            if key is not None and samples:
                self.model.setdefault(key, {}).update(samples)
                self.fed += len(samples)
        try:
            self.buffer.append(series, first_sample, time, bits.view(np.float64))
        finally:
            series[:], first_sample[:], time[:], bits[:] = 0, 0, -1, 0

    def of_group(self, group: int) -> Model:
        """The model's content of one group."""
        return {key: samples for key, samples in self.model.items() if key[0] % self.groups == group}

    def copied(self) -> Model:
        """A copy of the model."""
        return {key: dict(samples) for key, samples in self.model.items()}

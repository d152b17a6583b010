"""A small stored dataset in a store in memory, and the samples that a reader must find in it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from strandline.clock import Clock
from strandline.index.documents import encode_part_key
from strandline.node.bench.stored_load import StoredKeys, StoredLoad
from strandline.recovery.periods import HOUR
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, GroupRow, ManifestRows, ShardId

DATASET, GROUPS = "metrics", 4
DAY = 24 * HOUR
START = 20_000 * DAY
"""The beginning of a UTC day."""

Labels = Mapping[str, str]
Sample = tuple[Labels, int, float]
Series = tuple[tuple[str, str], ...]


def series_of(labels: Labels) -> Series:
    return tuple(sorted(labels.items()))


@dataclass
class StoredSamples:
    """Buckets of an hour, written one by one, and a model of what is stored: for each series and time, the sample of
    the later bucket, and of the higher shard.
    """

    store: Store
    clock: Clock
    shards: int = 1
    dataset: str = DATASET
    first_bucket: int = START // HOUR
    load: StoredLoad = field(init=False)
    model: dict[tuple[Series, int], tuple[int, int, float]] = field(default_factory=dict)
    _keys: dict[int, dict[Series, int]] = field(default_factory=dict)
    _starts: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = DatasetShape(self.dataset, HOUR, GROUPS, "xxh3-128", self.shards)
        self.load = StoredLoad(self.store, shape, self.clock.now_ms())
        for shard in range(self.shards):
            self.begin(shard)

    def begin(self, shard: int) -> None:
        """The shard is read from the first bucket on."""
        self.load.begin(shard, self.first_bucket - 1)
        self._keys[shard] = {}

    def write(self, shard: int, bucket: int, samples: Iterable[Sample], attempt: str = "a") -> list[GroupRow]:
        """Store a bucket, counted in hours since the epoch."""
        numbers = self._keys[shard]
        found = [(series_of(labels), time, value) for labels, time, value in samples]
        new: dict[int, int] = {}
        for series, time, value in found:
            number = numbers.setdefault(series, len(numbers))
            if time < self._starts.get((shard, number), time + 1):
                new[number] = self._starts[shard, number] = time
            if self.model.get((series, time), (-1, -1, 0.0))[:2] <= (shard, bucket):
                self.model[series, time] = (shard, bucket, value)
        keys = StoredKeys.of([encode_part_key(dict(series)) for series in numbers])
        columns = (
            np.array([numbers[series] for series, _, _ in found], dtype=np.int64),
            np.array([time for _, time, _ in found], dtype=np.int64),
            np.array([value for _, _, value in found], dtype=np.float64),
        )
        return self.load.write(shard, bucket, keys, columns, new=new, attempt=attempt)

    def manifests(self) -> dict[int, ManifestRows]:
        """The manifests of all shards."""
        found = {shard: self.store.manifest(ShardId(self.dataset, shard)) for shard in self._keys}
        return {shard: manifest for shard, manifest in found.items() if manifest is not None}

    def expected(self, start: int, end: int, **labels: str) -> list[tuple[Series, int, float]]:
        """The samples from `start` to before `end` of series with these labels, in the order of an export."""
        chosen = [
            (series, time, value)
            for (series, time), (_, _, value) in self.model.items()
            if start <= time < end and labels.items() <= dict(series).items()
        ]
        return sorted(chosen, key=lambda sample: (export_order(sample[0]), sample[1]))


def export_order(series: Series) -> tuple[str, Series]:
    """The metric first, then the other labels."""
    return dict(series).get("__name__", ""), tuple(label for label in series if label[0] != "__name__")


def rows_of_table(table: pa.Table) -> list[tuple[Series, int, float]]:
    """Exported rows in the model's form, in order."""
    found = []
    for row in table.to_pylist():
        labels = dict(row["labels"]) | ({"__name__": row["metric"]} if row["metric"] else {})
        found.append((series_of(labels), round(row["time"].timestamp() * 1000), row["value"]))
    return found

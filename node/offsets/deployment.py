"""An opened dataset: its store, its topic, and its shape."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from strandline.clock import Clock
from strandline.errors import Fatal
from strandline.node.offsets.topic import KafkaTopic, Topic, TopicNow
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.dataset import DatasetSettings
from strandline.node.settings.sections import Settings
from strandline.node.settings.units import Duration
from strandline.node.shard.assembling import open_store
from strandline.recovery.checkpoints import EXPIRY_SKEW_MS
from strandline.recovery.cutting import Cutting
from strandline.recovery.present import Present
from strandline.recovery.readiness import StoredDataset
from strandline.store.protocol import Store
from strandline.store.rows import ManifestRows, ShardId


class NoSuchDataset(Fatal):
    """The store does not have the dataset."""


class NoSuchShard(Fatal):
    """The topic has no such partition."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One dataset. Flush interval and groups are those with which it was created, not those of the settings."""

    name: str
    groups: int
    cutting: Cutting
    settings: DatasetSettings
    store: Store
    topic: Topic
    clock: Clock
    present: Present

    @classmethod
    def of(cls, settings: DatasetSettings, store: Store, topic: Topic, clock: Clock) -> "Deployment":
        """Raises `NoSuchDataset` if none of its shards was ever started."""
        shape = store.dataset(settings.name)
        if shape is None:
            raise NoSuchDataset(
                f"dataset {settings.name!r} is not in the store: no shard of it was ever started",
                remedy="Check dataset.name and the store in the settings",
            )
        cutting = Cutting(shape.flush_interval, settings.grace.milliseconds)
        present = Present(clock, store.server_time)
        return cls(settings.name, shape.groups, cutting, settings, store, topic, clock, present)

    def shard(self, number: int, topic: TopicNow) -> ShardId:
        """One of the dataset's shards. Raises `NoSuchShard`."""
        if number >= topic.partitions:
            raise NoSuchShard(
                f"there is no shard {number}: topic {self.settings.topic_name} has {topic.partitions} partitions",
                remedy=f"Give a number from 0 to {topic.partitions - 1}",
            )
        return ShardId(self.name, number)

    def stored(self, topic: TopicNow, first: int | None = None) -> StoredDataset:
        """The manifests of all partitions: the rows from bucket `first` on, or all rows of manifests that have no cut
        at `first`.
        """
        manifests = [self._manifest(ShardId(self.name, number), first) for number in range(topic.partitions)]
        present = self.present.now_ms()
        return StoredDataset(self.name, self.cutting, self.groups, manifests, present - self._row_life(topic), present)

    def manifest(self, shard: ShardId, first: int | None = None) -> ManifestRows | None:
        """The unexpired rows of a shard from bucket `first` on."""
        found = self.store.manifest(shard, first=first)
        self.present.poll_store_clock()
        return found.unexpired(self.present.now_ms() + EXPIRY_SKEW_MS) if found is not None else None

    def _manifest(self, shard: ShardId, first: int | None) -> ManifestRows | None:
        found = self.manifest(shard, first)
        # Without a cut at that bucket, earlier rows show how far the shard is stored.
        if found is None or first is None or any(cut.bucket == first for cut in found.cuts):
            return found
        return self.manifest(shard)

    def _row_life(self, topic: TopicNow) -> int:
        kept = Duration(topic.retention_ms) if topic.retention_ms is not None else None
        return (
            self.settings.retention.milliseconds
            + max(self.settings.history, self.settings.margin_with(kept)).milliseconds
        )


@contextmanager
def open_deployment(settings: Settings, environment: Mapping[str, str], clock: Clock) -> Iterator[Deployment]:
    """Open the dataset of the settings."""
    data_folder = settings.shard.data_folder(environment)
    if settings.store.kind == "sqlite" and not (path := settings.store.sqlite_path(data_folder)).exists():
        raise NoSuchDataset(
            f"the store {path} does not exist: no shard was ever started with these settings",
            remedy="Check shard.data_dir and store.sqlite_file in the settings",
        )
    topic = KafkaTopic(librdkafka_options(settings.kafka), settings.dataset.topic_name)
    with closing(topic), closing(open_store(settings, data_folder, clock)) as store:
        yield Deployment.of(settings.dataset, store, topic, clock)

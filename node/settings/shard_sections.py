"""The settings of shards on this node, of the store, and of replays."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from strandline.node.settings import fields, files
from strandline.node.settings.files import PathSetting
from strandline.node.settings.findings import Finding
from strandline.node.settings.section import AS_WRITTEN, Section
from strandline.node.settings.units import ByteSize, Duration

StartWord = Literal["earliest", "latest"]
StoreKind = Literal["cassandra", "sqlite"]
ReplayWord = Literal["auto", "direct", "spark"]


class ShardSettings(Section):
    """The settings of each shard of the dataset on this node. All amounts are for one shard, which is one process."""

    first_start: Annotated[
        StartWord | Duration, fields.choice_or_between(StartWord, Duration, "1s", "3650d"), AS_WRITTEN
    ] = Field(default="earliest", description="Where the first read of a partition starts.")
    series_limit: Annotated[int, fields.integer(1, 100_000_000)] = Field(
        default=2_000_000, description="The maximum number of series; beyond it, new ones are refused."
    )
    max_labels: Annotated[int, fields.integer(1, 256)] = Field(
        default=64, description="The maximum number of labels of a series."
    )
    max_label_name: Annotated[int, fields.integer(1, 32_766)] = Field(
        default=1024, description="The maximum bytes of a label's name."
    )
    max_label_value: Annotated[int, fields.integer(1, 32_766)] = Field(
        default=4096, description="The maximum bytes of a label's value."
    )
    max_record_size: Annotated[ByteSize, fields.between(ByteSize, "1k", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("32m"), description="The maximum size of an uncompressed record."
    )
    max_sample_age: Annotated[Duration | None, fields.between_or_none(Duration, "1s"), AS_WRITTEN] = Field(
        default=None, description="How far a sample's time may be before its record's; empty for no limit."
    )
    max_sample_ahead: Annotated[Duration | None, fields.between_or_none(Duration, "1s"), AS_WRITTEN] = Field(
        default=Duration.parse("10m"),
        description="How far a sample's time may be after its record's; empty for no limit.",
    )
    buffer_memory: Annotated[ByteSize, fields.between(ByteSize, "1m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("512m"), description="The memory for samples before they spill to disk."
    )
    spill_limit: Annotated[ByteSize, fields.between(ByteSize, "1m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("4g"), description="The maximum disk space of spilled samples."
    )
    segment_cache: Annotated[ByteSize, fields.between(ByteSize, "0m", "1t"), AS_WRITTEN] = Field(
        default=ByteSize.parse("128m"), description='The memory of the segment cache; "0m" for none.'
    )
    data_dir: Annotated[Path | None, files.folder, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="The folder of local copies and spills; empty for the user's state folder."
    )
    flush_spread: Annotated[float, fields.fraction(0, 0.9)] = Field(
        default=0.8, description="The fraction of the flush interval over which a bucket's writes are spread."
    )
    poll_records: Annotated[int, fields.integer(1, 100_000)] = Field(
        default=64, description="The number of records that are decoded at a time."
    )
    active_lag: Annotated[int, fields.integer(1, 100_000_000)] = Field(
        default=1000, description="A shard whose lag is fewer records than this has caught up."
    )
    warn_behind: Annotated[Duration, fields.between(Duration, "10s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("15s"),
        description="Answers carry a warning if records have waited in Kafka for longer than this.",
    )
    late_by: Annotated[Duration | None, fields.between_or_none(Duration, "1s"), AS_WRITTEN] = Field(
        default=Duration.parse("1d"),
        description="The maximum delay of samples that remote read accounts for; empty for no limit.",
    )
    index_refresh: Annotated[Duration, fields.between(Duration, "10ms", "1m"), AS_WRITTEN] = Field(
        default=Duration.parse("1s"), description="The maximum age of the index that queries see."
    )
    lucene_buffer: Annotated[ByteSize, fields.between(ByteSize, "1m", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("32m"), description="The Java heap for new series before they are written."
    )
    java_heap: Annotated[ByteSize, fields.between(ByteSize, "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("256m"), description="The heap of the JVM for Lucene."
    )

    def findings(self) -> Iterator[Finding]:
        half = ByteSize(self.java_heap.bytes // 2)
        if self.lucene_buffer > half:
            remedy = f"At most {half}, or a larger java_heap"
            yield Finding(f"is more than half of java_heap, {half}", remedy, ("lucene_buffer",), ("java_heap",))

    def data_folder(self, environ: Mapping[str, str]) -> Path:
        """`data_dir`, or the user's state folder."""
        return self.data_dir or files.user_state(environ)


class StoreSettings(Section):
    """Where data is stored."""

    kind: Annotated[StoreKind, fields.choice(StoreKind)] = Field(
        default="cassandra", description="Cassandra, or one SQLite file on this machine."
    )
    sqlite_file: Annotated[Path | None, files.own_file, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="The SQLite file; empty for one in the data folder."
    )

    def findings(self) -> Iterator[Finding]:
        if self.sqlite_file is not None and self.kind != "sqlite":
            remedy = "Set kind to sqlite, or leave this out"
            yield Finding(f"is given, but kind is {self.kind}", remedy, ("sqlite_file",), ("kind",))

    def sqlite_path(self, data_folder: Path) -> Path:
        """`sqlite_file`, or a file in the data folder."""
        return self.sqlite_file or data_folder / "store.sqlite"


class ReplaySettings(Section):
    """Whether shards or workers replay missed records, and how workers share the replay jobs."""

    mode: Annotated[ReplayWord, fields.choice(ReplayWord)] = Field(
        default="auto", description="Replay by shards (direct), by workers on Spark, or depending on the lag (auto)."
    )
    threshold: Annotated[int, fields.integer(0, 10**12)] = Field(
        default=50_000, description="With auto, up to this many records are read directly, and more on Spark."
    )
    lease: Annotated[Duration, fields.between(Duration, "5s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("2m"), description="After this time without a renewal, other workers take its jobs."
    )
    failures_allowed: Annotated[int, fields.integer(0, 100)] = Field(
        default=3, description="How often a job is retried after a failure."
    )
    wave_records: Annotated[int, fields.integer(1, 10**9)] = Field(
        default=20_000, description="The approximate number of records in a wave."
    )
    worker_idle: Annotated[Duration, fields.between(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long a worker waits for further jobs before it ends."
    )

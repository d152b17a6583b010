"""What a shard may take and do on this node, and which store it writes to."""

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
    """How each shard of the dataset works on this node. All amounts are for one shard, which is one process."""

    first_start: Annotated[
        StartWord | Duration, fields.word_or_between(StartWord, Duration, "1s", "3650d"), AS_WRITTEN
    ] = Field(default="earliest", description="Where a partition is read from that was never read before.")
    series_limit: Annotated[int, fields.whole_number(1, 100_000_000)] = Field(
        default=2_000_000, description="How many series there may be; past it new ones are refused."
    )
    max_labels: Annotated[int, fields.whole_number(1, 256)] = Field(
        default=64, description="How many labels a series may have."
    )
    max_label_name: Annotated[int, fields.whole_number(1, 32_766)] = Field(
        default=1024, description="How many bytes a label's name may have."
    )
    max_label_value: Annotated[int, fields.whole_number(1, 32_766)] = Field(
        default=4096, description="How many bytes a label's value may have."
    )
    max_record_size: Annotated[ByteSize, fields.between(ByteSize, "1k", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("32m"), description="How large a record may be once it is unpacked."
    )
    max_sample_age: Annotated[Duration | None, fields.between_or_none(Duration, "1s"), AS_WRITTEN] = Field(
        default=None, description="How far a sample's time may lie before its record's; empty for any."
    )
    max_sample_ahead: Annotated[Duration | None, fields.between_or_none(Duration, "1s"), AS_WRITTEN] = Field(
        default=Duration.parse("10m"),
        description="How far a sample's time may lie after its record's; empty for any.",
    )
    buffer_memory: Annotated[ByteSize, fields.between(ByteSize, "1m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("512m"), description="How much memory samples may take before they spill to disk."
    )
    spill_limit: Annotated[ByteSize, fields.between(ByteSize, "1m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("4g"), description="How much disk spilled samples may take."
    )
    segment_cache: Annotated[ByteSize, fields.between(ByteSize, "0m", "1t"), AS_WRITTEN] = Field(
        default=ByteSize.parse("128m"), description='How much memory segments take that are read again; "0m" for none.'
    )
    data_dir: Annotated[Path | None, files.folder, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="Where local copies and spilled samples lie; empty for a folder of the user's own."
    )
    flush_spread: Annotated[float, fields.fraction(0, 0.9)] = Field(
        default=0.8, description="Over how much of the flush interval the writes of a bucket are spread."
    )
    poll_records: Annotated[int, fields.whole_number(1, 100_000)] = Field(
        default=64, description="How many records are decoded at a time."
    )
    active_lag: Annotated[int, fields.whole_number(1, 100_000_000)] = Field(
        default=1000, description="A shard that is fewer records behind has caught up."
    )
    warn_behind: Annotated[Duration, fields.between(Duration, "10s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("15s"),
        description="Answers carry a warning if records have waited in Kafka for longer than this.",
    )
    late_by: Annotated[Duration | None, fields.between_or_none(Duration, "1s"), AS_WRITTEN] = Field(
        default=Duration.parse("1d"),
        description="How late samples come at most, as far as remote read is to wait for them; empty for any.",
    )
    index_refresh: Annotated[Duration, fields.between(Duration, "10ms", "1m"), AS_WRITTEN] = Field(
        default=Duration.parse("1s"), description="How old the index that queries see may be."
    )
    lucene_buffer: Annotated[ByteSize, fields.between(ByteSize, "1m", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("32m"), description="How much of the Java heap new series take before they are written."
    )
    java_heap: Annotated[ByteSize, fields.between(ByteSize, "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("256m"), description="The heap of the JVM that Lucene runs in."
    )

    def findings(self) -> Iterator[Finding]:
        half = ByteSize(self.java_heap.bytes // 2)
        if self.lucene_buffer > half:
            remedy = f"At most {half}, or a larger java_heap"
            yield Finding(f"is more than half of java_heap, {half}", remedy, ("lucene_buffer",), ("java_heap",))

    def data_folder(self, environ: Mapping[str, str]) -> Path:
        """`data_dir`, or the place where the XDG rules put a user's state."""
        return self.data_dir or files.user_state(environ)


class StoreSettings(Section):
    """Where everything is stored."""

    kind: Annotated[StoreKind, fields.choice(StoreKind)] = Field(
        default="cassandra", description="Cassandra, or one file of SQLite on this machine."
    )
    sqlite_file: Annotated[Path | None, files.own_file, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="SQLite's file; empty for one in the data folder."
    )

    def findings(self) -> Iterator[Finding]:
        if self.sqlite_file is not None and self.kind != "sqlite":
            remedy = "Set kind to sqlite, or leave this out"
            yield Finding(f"is given, but kind is {self.kind}", remedy, ("sqlite_file",), ("kind",))

    def sqlite_path(self, data_folder: Path) -> Path:
        """`sqlite_file`, or its place in the data folder."""
        return self.sqlite_file or data_folder / "store.sqlite"


class ReplaySettings(Section):
    """Who reads what was missed while a shard was down, and how workers share it."""

    mode: Annotated[ReplayWord, fields.choice(ReplayWord)] = Field(
        default="auto", description="Whether shards read it themselves (direct), on Spark, or by how much it is."
    )
    threshold: Annotated[int, fields.whole_number(0, 10**12)] = Field(
        default=50_000, description="So many records are read directly with auto; more are for Spark."
    )
    lease: Annotated[Duration, fields.between(Duration, "5s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("2m"), description="How long a worker may be unheard of before others do its jobs."
    )
    failures_allowed: Annotated[int, fields.whole_number(0, 100)] = Field(
        default=3, description="How often a job may fail and be tried again."
    )
    wave_records: Annotated[int, fields.whole_number(1, 10**9)] = Field(
        default=20_000, description="About how many records a worker reads at a time."
    )
    worker_idle: Annotated[Duration, fields.between(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long a worker waits for further jobs before it ends."
    )

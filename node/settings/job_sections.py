"""The settings of bulk jobs."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from strandline.node.settings import fields, files
from strandline.node.settings.files import PathSetting
from strandline.node.settings.section import AS_LIST, AS_WRITTEN, Section
from strandline.node.settings.units import ByteSize, Duration

_SUCH_AS_NODES = 'A list such as ["http://node-1:9460", "http://node-2:9460"], or an empty one'
_SUCH_AS_HOOK = "A URL such as https://ci.example.com/hooks/strandline, or nothing"


class JobsSettings(Section):
    """How bulk jobs are divided, when they stop by themselves, and how workers share them."""

    part_bytes: Annotated[ByteSize, fields.between(ByteSize, "1m", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("64m"), description="About how much of a file is one part."
    )
    chunk_bytes: Annotated[ByteSize, fields.between(ByteSize, "64k", "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("16m"), description="About how much of a text file lands in one Kafka transaction."
    )
    part_series: Annotated[int, fields.whole_number(100, 10**8)] = Field(
        default=100_000, description="About how many series are one part of a job that sends them."
    )
    max_record: Annotated[ByteSize, fields.between(ByteSize, "1k", "16m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("1m"), description="The longest record that is read; a longer one is a bad record."
    )
    error_rate: Annotated[float, fields.fraction(0, 1)] = Field(
        default=0.05, description="A job stops when more than this share of its records failed."
    )
    error_minimum: Annotated[int, fields.whole_number(1, 10**9)] = Field(
        default=1_000, description="So many records are tried before error_rate counts."
    )
    expiry: Annotated[Duration, fields.between(Duration, "1h", "30d"), AS_WRITTEN] = Field(
        default=Duration.parse("5d"), description="How long a job may be paused or broken before it is cancelled."
    )
    lease: Annotated[Duration, fields.between(Duration, "30s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("2m"), description="How long a worker may be unheard of before others do its parts."
    )
    max_lag: Annotated[Duration | None, fields.between_or_none(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="Jobs wait while a shard is further behind; empty for no limit."
    )
    driver_port: Annotated[int, fields.whole_number(0, 65535)] = Field(
        default=0, description="Where Spark's executors report to the worker; 0 for any free port."
    )
    failures_allowed: Annotated[int, fields.whole_number(0, 100)] = Field(
        default=3, description="How often a part may fail and be tried again."
    )
    node_urls: Annotated[tuple[str, ...], fields.urls(_SUCH_AS_NODES), AS_LIST] = Field(
        default=(), description="The nodes that jobs ask for series; empty for the node of these settings."
    )
    events_folder: Annotated[Path | None, files.folder, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="Where a file is written when a job ends; empty for none."
    )
    webhook: Annotated[str, fields.url_or_nothing(_SUCH_AS_HOOK)] = Field(
        default="", description="A URL that is called when a job ends; empty for none."
    )

"""The settings of bulk jobs."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from strandline.node.settings import fields, files
from strandline.node.settings.files import PathSetting
from strandline.node.settings.section import AS_LIST, AS_WRITTEN, Section
from strandline.node.settings.units import ByteSize, Duration

_NODE_URLS_REMEDY = 'A list such as ["http://node-1:9460", "http://node-2:9460"], or an empty one'
_WEBHOOK_REMEDY = "A URL such as https://ci.example.com/hooks/strandline, or nothing"


class JobsSettings(Section):
    """How bulk jobs are divided, when the circuit breaker stops them, and how workers share them."""

    part_bytes: Annotated[ByteSize, fields.between(ByteSize, "1m", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("64m"), description="The approximate size of a part of a file."
    )
    chunk_bytes: Annotated[ByteSize, fields.between(ByteSize, "64k", "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("16m"), description="The approximate size of a chunk of a text file."
    )
    part_series: Annotated[int, fields.integer(100, 10**8)] = Field(
        default=100_000, description="The approximate number of series in a part of a send job."
    )
    max_record: Annotated[ByteSize, fields.between(ByteSize, "1k", "16m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("1m"), description="The maximum size of a record; a longer one is a bad record."
    )
    error_rate: Annotated[float, fields.fraction(0, 1)] = Field(
        default=0.05, description="A job stops when more than this fraction of its records have failed."
    )
    error_minimum: Annotated[int, fields.integer(1, 10**9)] = Field(
        default=1_000, description="The number of records that are processed before error_rate applies."
    )
    expiry: Annotated[Duration, fields.between(Duration, "1h", "30d"), AS_WRITTEN] = Field(
        default=Duration.parse("5d"), description="How long a job may be paused or broken before it is cancelled."
    )
    lease: Annotated[Duration, fields.between(Duration, "30s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("2m"), description="After this time without a renewal, other workers take its parts."
    )
    max_lag: Annotated[Duration | None, fields.between_or_none(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="Jobs wait while a shard's lag is larger; empty for no limit."
    )
    driver_port: Annotated[int, fields.integer(0, 65535)] = Field(
        default=0, description="Where Spark's executors report to the worker; 0 for any free port."
    )
    failures_allowed: Annotated[int, fields.integer(0, 100)] = Field(
        default=3, description="How often a part is retried after a failure."
    )
    node_urls: Annotated[tuple[str, ...], fields.urls(_NODE_URLS_REMEDY), AS_LIST] = Field(
        default=(), description="The nodes that jobs query for series; empty for the node of these settings."
    )
    events_folder: Annotated[Path | None, files.folder, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="Where a file is written when a job ends; empty for none."
    )
    webhook: Annotated[str, fields.optional_url(_WEBHOOK_REMEDY)] = Field(
        default="", description="A URL that is called when a job ends; empty for none."
    )

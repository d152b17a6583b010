"""The settings of bulk jobs."""

from typing import Annotated

from pydantic import Field

from strandline.node.settings import fields
from strandline.node.settings.section import AS_WRITTEN, Section
from strandline.node.settings.units import ByteSize, Duration


class JobsSettings(Section):
    """How bulk jobs are divided, when they stop by themselves, and how workers share them."""

    part_bytes: Annotated[ByteSize, fields.between(ByteSize, "1m", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("64m"), description="About how much of a file is one part."
    )
    chunk_bytes: Annotated[ByteSize, fields.between(ByteSize, "64k", "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("16m"), description="About how much of a text file lands in one Kafka transaction."
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

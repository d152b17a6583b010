"""Reads exact offset ranges of a topic with Spark's official Kafka source.

Three properties of that source determine this module. It silently drops a range whose start is after its end as soon as
ranges are split, so such ranges are refused here. The Java client reads uncommitted records by default, unlike the
shards' client. And ranges must be explicit offsets: one given as "earliest" is never split.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from strandline.errors import Fatal


class BadRange(Fatal):
    """An invalid offset range."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of one partition from `start` up to, but not including, `end`."""

    partition: int
    start: int
    end: int


def source_options(
    bootstrap_servers: str,
    topic: str,
    ranges: Sequence[OffsetRange],
    *,
    max_records_per_task: int,
    client: Mapping[str, str],
) -> dict[str, str]:
    """The options with which the source reads exactly these ranges. `client` has the Java client's own properties."""
    _check(topic, ranges)
    return {
        # The caller's properties come first, so that they can't override the ones below.
        **{f"kafka.{key}": value for key, value in client.items()},
        "kafka.bootstrap.servers": bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: [one.partition for one in ranges]}),
        "startingOffsets": json.dumps({topic: {str(one.partition): one.start for one in ranges}}),
        "endingOffsets": json.dumps({topic: {str(one.partition): one.end for one in ranges}}),
        "includeHeaders": "true",
        "maxRecordsPerPartition": str(max_records_per_task),
        "failOnDataLoss": "true",
    }


def read_ranges(session: SparkSession, options: Mapping[str, str]) -> DataFrame:
    """The records of the ranges in the options, with the columns of the Kafka source."""
    return session.read.format("kafka").options(**options).load()


def _check(topic: str, ranges: Sequence[OffsetRange]) -> None:
    if not ranges:
        raise BadRange(f"no offset range of {topic} was passed")
    seen: set[int] = set()
    for one in ranges:
        if one.partition in seen:
            raise BadRange(f"partition {one.partition} of {topic} has more than one range")
        seen.add(one.partition)
        # Negative offsets mean "earliest" and "latest" to the source.
        if not 0 <= one.start <= one.end:
            raise BadRange(
                f"the range [{one.start}, {one.end}) of {topic}, partition {one.partition}, is invalid: "
                "0 <= start <= end must hold"
            )

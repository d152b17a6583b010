"""Reading exact offset ranges of a topic with Spark's official Kafka source.

Three things about that source shape this module. A range whose start lies past its end is dropped without a word as
soon as ranges are split, so it is refused here. The Java client reads uncommitted records unless told otherwise,
unlike the shards' client. And a range must be explicit offsets: one given as "earliest" is never split.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from strandline.errors import Fatal


class BadRange(Fatal):
    """An offset range that can't be read as it was meant."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of one partition from `start` up to, not including, `end`."""

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
    """The options that make the source read just these ranges. `client` has the Java client's own properties."""
    _check(topic, ranges)
    return {
        # The caller's properties come first: none of them may undo what follows.
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
    """The records of the ranges that the options name, as the Kafka source's columns."""
    return session.read.format("kafka").options(**options).load()


def _check(topic: str, ranges: Sequence[OffsetRange]) -> None:
    if not ranges:
        raise BadRange(f"no offset range of {topic} was given")
    seen: set[int] = set()
    for one in ranges:
        if one.partition in seen:
            raise BadRange(f"partition {one.partition} of {topic} is named twice")
        seen.add(one.partition)
        # Negative offsets mean "earliest" and "latest" to the source.
        if not 0 <= one.start <= one.end:
            raise BadRange(
                f"the range [{one.start}, {one.end}) of {topic}, partition {one.partition}, is not one: "
                "0 <= start <= end must hold"
            )

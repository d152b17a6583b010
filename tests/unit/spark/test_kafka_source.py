import json
import re

import pytest

from strandline.spark.kafka_source import BadRange, OffsetRange, source_options

pytestmark = pytest.mark.unit


def options(*ranges: OffsetRange, client: dict[str, str] | None = None) -> dict[str, str]:
    return source_options("127.0.0.1:9092", "metrics", ranges, max_records_per_task=1000, client=client or {})


def test_every_assigned_partition_has_a_start_and_an_end() -> None:
    made = options(OffsetRange(0, 5, 9), OffsetRange(3, 7, 7))
    assert json.loads(made["assign"]) == {"metrics": [0, 3]}
    assert json.loads(made["startingOffsets"]) == {"metrics": {"0": 5, "3": 7}}
    assert json.loads(made["endingOffsets"]) == {"metrics": {"0": 9, "3": 7}}


@pytest.mark.parametrize(
    ("ranges", "complaint"),
    [
        ([OffsetRange(2, 10, 9)], "[10, 9) of metrics, partition 2"),
        ([OffsetRange(0, -2, 9)], "[-2, 9)"),
        ([OffsetRange(0, 0, -1)], "[0, -1)"),
        ([OffsetRange(0, 0, 1), OffsetRange(0, 1, 2)], "partition 0 of metrics has more than one range"),
        ([], "no offset range of metrics"),
    ],
)
def test_a_range_that_spark_would_drop_or_misread_is_refused(ranges: list[OffsetRange], complaint: str) -> None:
    with pytest.raises(BadRange, match=re.escape(complaint)):
        options(*ranges)


def test_client_properties_pass_through_but_cannot_undo_the_guarantees() -> None:
    made = options(
        OffsetRange(0, 0, 1),
        client={"security.protocol": "SASL_SSL", "isolation.level": "read_uncommitted", "bootstrap.servers": "other:1"},
    )
    assert made["kafka.security.protocol"] == "SASL_SSL"
    assert made["kafka.isolation.level"] == "read_committed"
    assert made["kafka.bootstrap.servers"] == "127.0.0.1:9092"
    assert made["failOnDataLoss"] == "true"

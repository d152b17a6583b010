"""Log lines about records that could not be decoded."""

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.node.shard.dead_letter_log import DeadLetterLog
from strandline.store.rows import ShardId
from support.shard_world import HOUR, START, World

pytestmark = pytest.mark.unit

SHARD = ShardId("metrics", 3)


def test_invalid_records_are_logged_once_a_minute_with_the_newest_reason_and_offset() -> None:
    clock, log = ManualClock(), DeadLetterLog()
    with capture_logs() as lines:
        for offset in range(300):
            log.add(offset, f"reason {offset}")
            log.log_if_due(SHARD, clock)
            clock.sleep(1.0)
        clock.sleep(60.0)
        # Without a new one, the dead letters since the last line are logged.
        log.log_if_due(SHARD, clock)
        clock.sleep(3600.0)
        log.log_if_due(SHARD, clock)
    assert [(line["records"], line["newest_offset"], line["newest_reason"]) for line in lines] == [
        (1, 0, "reason 0"),
        (60, 60, "reason 60"),
        (60, 120, "reason 120"),
        (60, 180, "reason 180"),
        (60, 240, "reason 240"),
        (59, 299, "reason 299"),
    ]
    assert {(line["shard"], line["log_level"]) for line in lines} == {("metrics/3", "warning")}


def test_a_shard_logs_the_records_that_it_could_not_decode_across_buckets(world: World) -> None:
    world.start()
    with capture_logs() as lines:
        for time in (START, START + 1, START + 2 * HOUR):
            world.log.append(b"nothing that can be decoded", time)
            world.read_all()
    undecoded = [line for line in lines if "dead-letter topic" in line["event"]]
    assert [(line["records"], line["newest_offset"]) for line in undecoded] == [(1, 0)], (
        "the other ones were within the minute"
    )

"""What the log in memory does in addition to Kafka's; the rest is in the contract."""

import pytest

from strandline.clock import ManualClock
from strandline.node.shard.log import LogUnreachable
from strandline.node.shard.memory_log import DeadLetter, MemoryDeadLetters, MemoryLog

pytestmark = pytest.mark.unit


def test_an_empty_poll_advances_the_clock_by_its_timeout() -> None:
    clock = ManualClock()
    log = MemoryLog(clock)
    log.seek(0)
    log.poll(1, 2.5)
    assert clock.monotonic() == 2.5
    log.append(b"value", 1)
    log.poll(1, 2.5)
    assert clock.monotonic() == 2.5


def test_without_a_clock_a_poll_does_not_wait() -> None:
    log = MemoryLog()
    log.seek(0)
    assert log.poll(1, 1e9).position == 0


def test_it_outlives_a_reader_that_was_closed_and_one_that_crashed() -> None:
    log = MemoryLog()
    for offset in range(3):
        assert log.append(b"value", offset) == offset
    log.seek(0)
    log.poll(2, 0)
    log.seek(1)
    assert log.poll(5, 0).offsets.tolist() == [1, 2]
    log.close()
    with pytest.raises(RuntimeError, match="seek"):
        log.poll(1, 0)
    log.seek(0)
    assert len(log.poll(5, 0)) == 3


def test_brokers_become_reachable_again() -> None:
    log = MemoryLog()
    log.append(b"value", 1)
    log.seek(0)
    log.reachable = False
    with pytest.raises(LogUnreachable):
        log.poll(1, 0)
    log.reachable = True
    assert len(log.poll(1, 0)) == 1


def test_a_transaction_without_a_record_leaves_no_marker() -> None:
    log = MemoryLog()
    log.begin().commit()
    assert log.ends().high == 0


def test_dead_letters_are_stored_until_there_is_no_room() -> None:
    letters = MemoryDeadLetters(capacity=1)
    for offset in (7, 8):
        letters.send(shard=1, offset=offset, time=5, reason="why", value=b"x")
    letters.close(0)
    assert letters.letters == [DeadLetter(shard=1, offset=7, time=5, reason="why", value=b"x")]
    assert letters.lost == 1

"""The contract of the part log, with Kafka and with its in-memory counterpart."""

from collections import Counter
from contextlib import suppress

import pytest

from strandline.errors import Fatal, Retryable
from strandline.jobs.landing.part_log import DeadlinePassed, OffsetExpired
from strandline.jobs.landing.progress import Landed, MetadataTooLong, PartIdentity, Progress
from strandline.jobs.landing.transactions import LandingUnknown, OffsetUnstable, PartFenced
from strandline.jobs.sending.template import Message
from strandline.kafka.errors import LogUnreachable, TopicMissing
from strandline.wire.record_headers import are_times_checked
from support.part_logs import (
    PARTITIONS,
    Killed,
    MemoryWorld,
    World,
    begin,
    kill,
    land,
    landed,
    partitions_of,
    progress_behind,
    records_of,
    samples,
    samples_by_chunk,
)
from support.real_kafka import eventually

pytestmark = pytest.mark.contract

DAY_MS = 24 * 3_600_000


def test_chunks_land_in_order_and_a_later_holder_finds_them(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    assert begin(log, part) == Landed()
    land(log, 0)
    land(log, 1, samples=20)
    assert begin(world.open_log(), part) == landed(2)
    assert samples(world, part) == {0: 10, 1: 20}


def test_records_land_in_their_partition_with_chunk_and_header_for_checked_times(
    world: World, part: PartIdentity
) -> None:
    log = world.open_log()
    begin(log, part)
    land(log, 0)
    found = world.committed()
    assert Counter((partition, value) for partition, value, _ in found) == Counter(
        (record.partition, record.value) for record in records_of(0)
    )
    for _, _, headers in found:
        assert are_times_checked(headers.items())
        assert headers["strandline-job"] == part.job.encode()
        assert (headers["strandline-part"], headers["strandline-chunk"]) == (b"7", b"0")


def test_records_with_keys_are_partitioned_by_key_and_keep_their_headers(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    keys = [b"key-%d" % number for number in range(20)]
    for chunk in range(2):
        records = [Message(key, b"value", [("own", key)]) for key in keys]
        log.land(chunk, records, progress_behind(chunk), world.clock.monotonic() + 60)
    found = world.committed()
    assert Counter(headers["own"] for _, _, headers in found) == Counter(2 * keys)
    assert {headers["strandline-part"] for _, _, headers in found} == {b"7"}
    # Each key has one partition, and all partitions have some.
    assert len({(headers["own"], partition) for partition, _, headers in found}) == len(keys)
    assert len({partition for partition, _, _ in found}) == PARTITIONS


def test_a_chunk_without_records_counts_as_landed(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    log.land(0, [], progress_behind(0), world.clock.monotonic() + 60)
    land(log, 1)
    assert begin(world.open_log(), part) == landed(2)
    assert samples(world, part) == {1: 10}


def test_parts_do_not_disturb_each_other(world: World, part: PartIdentity) -> None:
    other = PartIdentity(part.dataset, part.job, part.part + 1)
    log, others = world.open_log(), world.open_log()
    begin(log, part)
    begin(others, other)
    land(log, 0)
    land(others, 0, samples=5)
    land(log, 1)
    assert begin(log, other) == landed(1)
    assert begin(others, part) == landed(2)
    assert samples_by_chunk(world.committed()) == {
        (part.job, 7, 0): 10,
        (part.job, 7, 1): 10,
        (part.job, 8, 0): 5,
    }


def test_a_part_that_is_begun_twice_continues_after_what_has_landed(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    assert begin(log, part) == begin(log, part) == Landed()
    land(log, 0)
    assert begin(log, part) == landed(1)
    land(log, 1)
    assert samples(world, part) == {0: 10, 1: 10}


def test_a_zombie_lands_nothing_between_its_successors_begin_and_first_chunk(world: World, part: PartIdentity) -> None:
    zombie, other = world.open_log(), world.open_log()
    begin(zombie, part)
    land(zombie, 0)
    assert begin(other, part) == landed(1)
    with pytest.raises(PartFenced):
        land(zombie, 1, samples=99)
    assert zombie.held is None
    land(other, 1)
    assert samples(world, part) == {0: 10, 1: 10}


def test_a_chunk_that_the_former_holder_lands_just_before_it_is_fenced_is_found(
    world: World, part: PartIdentity
) -> None:
    former = world.open_log()
    begin(former, part)
    other = world.open_log(before={"hold": lambda: land(former, 0)})
    assert begin(other, part) == landed(1)
    assert samples(world, part) == {0: 10}


@pytest.mark.parametrize("step", ["send", "send_offset", "commit"])
def test_a_zombie_that_is_fenced_within_its_transaction_lands_nothing(
    world: World, part: PartIdentity, step: str
) -> None:
    other = world.open_log()
    found = []
    zombie = world.open_log(before={step: lambda: found.append(begin(other, part))})
    begin(zombie, part)
    with pytest.raises(PartFenced):
        land(zombie, 0, samples=99)
    assert found == [Landed()]
    land(other, 0)
    assert samples(world, part) == {0: 10}


def test_a_holder_that_was_fenced_may_begin_again_if_the_part_is_its_own(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    begin(world.open_log(), part)
    with pytest.raises(PartFenced):
        land(log, 0)
    assert begin(log, part) == Landed()
    land(log, 0)
    assert samples(world, part) == {0: 10}


def test_a_commit_whose_answer_was_lost_is_found_by_the_next_begin(world: World, part: PartIdentity) -> None:
    def lose() -> None:
        raise LandingUnknown("the answer was lost")

    log = world.open_log(after={"commit": lose})
    begin(log, part)
    with pytest.raises(LandingUnknown):
        land(log, 0)
    with pytest.raises(RuntimeError, match="begin"):
        land(log, 0)
    assert begin(log, part) == landed(1)
    assert samples(world, part) == {0: 10}


@pytest.mark.parametrize("step", ["begin", "send", "send_offset"])
def test_a_transaction_that_a_dead_process_left_open_is_aborted_by_the_next_begin(
    world: World, part: PartIdentity, step: str
) -> None:
    log = world.open_log(after={step: kill})
    begin(log, part)
    with suppress(Killed):
        land(log, 0, samples=99)
    other = world.open_log()
    assert begin(other, part) == Landed()
    land(other, 0)
    assert samples(world, part) == {0: 10}


def test_a_process_that_dies_right_after_its_commit_has_landed_the_chunk(world: World, part: PartIdentity) -> None:
    log = world.open_log(after={"commit": kill})
    begin(log, part)
    with suppress(Killed):
        land(log, 0)
    assert begin(world.open_log(), part) == landed(1)
    assert samples(world, part) == {0: 10}


def test_after_a_failure_in_a_transaction_nothing_has_landed_and_readers_are_not_held_back(
    world: World, part: PartIdentity
) -> None:
    def fail() -> None:
        raise LogUnreachable("no answer")

    log = world.open_log(before={"send_offset": fail})
    begin(log, part)
    with pytest.raises(LogUnreachable):
        land(log, 0, samples=99)
    assert log.held is None
    # `committed` waits until no transaction is open; no worker has begun the part again.
    assert samples(world, part) == {}
    other = world.open_log()
    assert begin(other, part) == Landed()
    land(other, 0)
    assert samples(world, part) == {0: 10}


def test_an_unstable_offset_is_awaited_and_never_taken_for_a_missing_one(world: World, part: PartIdentity) -> None:
    if isinstance(world, MemoryWorld):
        world.cluster.unstable_reads = 3
    log, other = world.open_log(), world.open_log()
    for number in range(5):
        identity = PartIdentity(part.dataset, part.job, number)
        begin(log, identity)
        land(log, 0, samples=1)
        assert begin(other, identity) == landed(1)


def test_an_offset_within_an_open_transaction_is_unstable(world: World, part: PartIdentity) -> None:
    log = world.open_log(after={"send_offset": kill})
    begin(log, part)
    with suppress(Killed):
        land(log, 0)
    with pytest.raises(OffsetUnstable):
        world.transactions().committed(part, 20)


def test_counts_that_take_too_many_characters_are_refused_before_anything_is_sent(
    world: World, part: PartIdentity
) -> None:
    sent: list[str] = []
    log = world.open_log(before={step: lambda: sent.append("") for step in ("begin", "send", "send_offset")})
    begin(log, part)
    with pytest.raises(MetadataTooLong):
        log.land(0, records_of(0), Progress(0, (10**9,) * 200), world.clock.monotonic() + 60)
    assert sent == []
    assert log.held == part
    land(log, 0)
    assert samples(world, part) == {0: 10}


def test_the_maximum_number_of_counts_is_returned_unchanged(world: World, part: PartIdentity) -> None:
    progress = Progress(2**63, (10**18,) * 48)
    log = world.open_log()
    begin(log, part)
    log.land(0, [], progress, world.clock.monotonic() + 60)
    assert begin(world.open_log(), part) == Landed(1, progress)


def test_a_chunk_out_of_order_is_refused(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    with pytest.raises(ValueError, match="0 is the next one"):
        land(log, 1)
    land(log, 0)
    with pytest.raises(ValueError, match="1 is the next one"):
        land(log, 0)


def test_nothing_is_sent_after_the_deadline(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    with pytest.raises(DeadlinePassed):
        log.land(0, records_of(0), progress_behind(0), world.clock.monotonic())
    assert log.held == part
    with pytest.raises(DeadlinePassed):
        log.begin(part, first_begun_ms=None, deadline=world.clock.monotonic())
    assert samples(world, part) == {}


def test_partitions_that_were_added_between_two_chunks_are_used(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    assert partitions_of(log) == PARTITIONS
    land(log, 0)
    world.grow(PARTITIONS + 5)
    eventually(lambda: partitions_of(log) == PARTITIONS + 5)
    land(log, 1, samples=100, partitions=PARTITIONS + 5)
    assert samples(world, part) == {0: 10, 1: 100}
    assert {partition for partition, _, _ in world.committed()} == set(range(PARTITIONS + 5))


def test_nothing_waits_for_a_clock_within_a_transaction(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    before = world.clock.sleeps
    land(log, 0)
    land(log, 1)
    assert world.clock.sleeps == before


def test_a_missing_topic_is_named(world: World, part: PartIdentity) -> None:
    with pytest.raises(TopicMissing) as caught:
        begin(world.without_topic(), part)
    assert isinstance(caught.value, Fatal)


def test_unreachable_brokers_are_a_retryable_error(world: World, part: PartIdentity) -> None:
    log = world.unreachable()
    with pytest.raises(LogUnreachable) as caught:
        log.begin(part, first_begun_ms=None, deadline=world.clock.monotonic() + 1)
    assert isinstance(caught.value, Retryable)


def test_a_part_whose_group_was_deleted_starts_from_the_beginning(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    land(log, 0)
    log.delete_group(part)
    log.delete_group(part)
    assert begin(log, part) == Landed()


def test_a_part_whose_offset_may_have_expired_is_not_sent_again(world: World, part: PartIdentity) -> None:
    log, now = world.open_log(), world.clock.now_ms()
    assert log.offset_retention_ms() == 7 * DAY_MS
    assert begin(log, part, now - 5 * DAY_MS) == Landed()
    with pytest.raises(OffsetExpired, match="first begun 6"):
        begin(log, part, now - 6 * DAY_MS - DAY_MS // 10)
    with pytest.raises(RuntimeError, match="begin"):
        land(log, 0)
    assert samples(world, part) == {}


def test_a_part_whose_offset_exists_continues_whatever_its_age(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    land(log, 0)
    assert begin(log, part, world.clock.now_ms() - 30 * DAY_MS) == landed(1)
    land(log, 1)
    assert samples(world, part) == {0: 10, 1: 10}


def test_closing_twice_does_nothing(world: World, part: PartIdentity) -> None:
    log = world.open_log()
    begin(log, part)
    log.close()
    log.close()

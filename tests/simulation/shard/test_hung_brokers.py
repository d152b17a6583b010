"""A hung broker must neither stop the reading loop nor influence a decision with a late answer."""

from collections.abc import Iterator

import pytest

from strandline.errors import StrandlineError
from strandline.node.shard.log import LogUnreachable, TopicUnfit
from strandline.node.shard.status import Phase
from support.shard_world import GRACE, HOUR, MINUTE, START, World, produce_everywhere

pytestmark = pytest.mark.simulation

BUCKET = START // HOUR
OVERDUE = (BUCKET + 1) * HOUR + 2 * GRACE


@pytest.fixture
def active(world: World) -> Iterator[World]:
    world.start()
    produce_everywhere(world)
    world.settle()
    assert world.is_active()
    return world


def pass_to(world: World, time: int) -> None:
    world.pass_time(time - world.clock.now_ms())


def turn(world: World, seconds: float = 1.0) -> None:
    world.pass_time(int(seconds * 1000))
    world.running.step()


def cut_of(world: World, bucket: int) -> tuple[int, int]:
    world.store_due()
    (cut,) = [cut for cut in world.manifest().cuts if cut.bucket == bucket]
    return cut.start, cut.end


def test_a_hung_broker_does_not_stop_the_reading_loop(active: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for `kafka.request_timeout`, which may be longer than `node.hang_after`."""

    def waits(*_: object) -> None:
        raise AssertionError("the loop waits for an answer")

    for question in ("ends", "offset_at", "topic_id"):
        monkeypatch.setattr(active.log, question, waits)
    active.log.hangs = True
    iterations = active.status.turns
    for number in range(60):
        produce_everywhere(active, str(number))
        turn(active)
    assert active.status.turns == iterations + 60
    assert active.status.counters.records == 61, "fetched records are read"
    assert active.status.counters.cuts == 0


def test_a_late_answer_pairs_the_end_with_the_present_from_before_the_request(active: World) -> None:
    """Records that arrived after the request and before the bucket was overdue belong to the bucket."""
    pass_to(active, OVERDUE - 10_000)
    active.log.hangs = True
    turn(active)
    for number in range(5):  # More records than one poll reads.
        active.produce(("m", str(number), active.clock.now_ms(), 1.0), late=2 * GRACE)
    pass_to(active, OVERDUE)
    active.log.hangs = False
    for _ in range(3):
        turn(active)
    assert cut_of(active, BUCKET) == (0, 6)
    active.check_all_found()


def test_records_without_a_time_close_a_bucket_even_if_each_answer_arrives_after_further_records(active: World) -> None:
    """Scenario 40: a leader's clock is slow. Records that were read before the answer arrived stay in the bucket."""
    pass_to(active, OVERDUE + 1_000)
    for number in range(4):
        active.log.hangs = True
        active.produce(("m", str(number), active.clock.now_ms(), 1.0), late=15 * MINUTE)
        turn(active)
        active.log.hangs = False
        active.produce(("m", f"{number}, answered", active.clock.now_ms(), 1.0), late=15 * MINUTE)
        turn(active)
    assert active.running.bucket == BUCKET + 1
    assert cut_of(active, BUCKET) == (0, 3), "the second of the records was read before the answer arrived"
    active.check_all_found()


def test_an_old_answer_does_not_make_a_shard_active(active: World) -> None:
    active.status.phase = Phase.CATCHING_UP
    active.log.hangs = True
    turn(active)
    active.pass_time(20_000)
    active.log.hangs = False
    active.running.step()
    assert active.status.phase is Phase.CATCHING_UP
    turn(active)
    assert active.is_active()


@pytest.mark.parametrize("error", [LogUnreachable("no answer"), TopicUnfit("there is no topic metrics")])
def test_lookups_for_cuts_are_not_repeated_before_the_brokers_answer(
    active: World, monkeypatch: pytest.MonkeyPatch, error: StrandlineError
) -> None:
    """Each lookup waits up to `kafka.request_timeout`. A broker that does not know the topic may have just started."""
    looked_up, ends = 0, active.log.ends

    def count() -> None:
        nonlocal looked_up
        looked_up += 1
        raise error

    active.log.hangs = True
    monkeypatch.setattr(active.log, "ends", count)
    active.pass_time(3 * HOUR)
    for number in range(10):
        produce_everywhere(active, str(number))  # Each closes several buckets.
        turn(active)
    assert looked_up == 1
    monkeypatch.setattr(active.log, "ends", ends)
    active.log.hangs = False
    turn(active)
    produce_everywhere(active, "after")
    active.settle()
    assert active.running.bucket == BUCKET + 3
    active.check_all_found()

"""A running shard: its two threads, stops, fencing, and unavailable stores."""

import threading
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from strandline.errors import ExitCode
from strandline.node.shard import running
from strandline.node.shard.flusher import HEARTBEAT_MS
from strandline.node.shard.log import Records
from strandline.node.shard.parts import StoreProgress
from strandline.node.shard.running import RunningShard, ShardFenced
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted
from strandline.store.protocol import Fenced, StoreUnavailable
from support.shard_world import GRACE, HOUR, StoreCall, World, produce_everywhere
from support.threaded_shards import (
    PATIENCE_S,
    ThreadedShard,
    check_resources_are_released,
    state,
    storing_threads,
    take_by_force,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def run(world: World) -> ThreadedShard:
    return ThreadedShard(world)


def test_a_stop_ends_both_threads_and_releases_the_shard(world: World, run: ThreadedShard) -> None:
    produce_everywhere(world)
    run.start()
    run.wait_until(lambda: run.phase is Phase.ACTIVE)
    assert len(storing_threads()) == 1
    assert state(world).seen_at is not None
    assert run.stop() is None
    assert run.phase is Phase.STOPPED
    assert run.running.status.counters.records == 1
    assert state(world).seen_at is None
    assert run.storage.closed == 1
    check_resources_are_released(run)


def test_a_stop_stores_only_groups_that_are_due(world: World, run: ThreadedShard) -> None:
    produce_everywhere(world)
    run.start()
    run.wait_until(lambda: run.running.status.counters.records == 1)
    assert run.stop() is None
    assert world.manifest().groups == ()


def test_groups_that_are_due_are_stored_while_it_runs(world: World, run: ThreadedShard) -> None:
    produce_everywhere(world)
    run.start()
    world.pass_time(HOUR + GRACE)
    run.wait_until(lambda: len(world.manifest().groups) == world.options.groups)
    run.stop()
    assert sum(row.samples for row in world.manifest().groups) == len(world.produced[0].samples)
    world.check_stored_once()


def test_a_stop_during_the_start_takes_effect(world: World, run: ThreadedShard) -> None:
    run.running.stop()
    assert run.end() is None
    assert run.phase is Phase.STOPPED
    assert state(world).seen_at is None
    check_resources_are_released(run)


def test_a_stop_may_be_repeated(run: ThreadedShard) -> None:
    run.start()
    run.running.stop()
    assert run.stop() is None


def test_dead_letters_in_flight_are_waited_for_briefly(
    world: World, run: ThreadedShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(world.dead_letters, "close", lambda *, timeout: waited.append(timeout))
    run.start()
    run.stop()
    assert len(waited) == 1
    assert 0 < waited[0] <= 10


def test_an_unreachable_store_during_the_release_is_no_error(world: World, run: ThreadedShard) -> None:
    run.start()

    def fail(call: StoreCall) -> None:
        if call.name == "touch":
            raise StoreUnavailable("no answer")

    world.store.before = fail
    with capture_logs() as lines:
        assert run.stop() is None
    assert run.phase is Phase.STOPPED
    assert "the shard could not be released" in [line["event"] for line in lines]
    assert run.storage.closed == 1


def test_a_shard_fenced_while_storing_ends_and_does_not_touch_the_new_owners_row(
    world: World, run: ThreadedShard
) -> None:
    run.start()
    touched: list[object] = []
    world.store.before = lambda call: touched.append(call.arguments[1]) if call.name == "touch" else None
    other = take_by_force(world)
    before = state(world)
    world.pass_time(HEARTBEAT_MS)
    error = run.end()
    assert isinstance(error, ShardFenced)
    assert error.exit_code == ExitCode.FENCED == 5
    assert isinstance(error.__cause__, Fenced)
    assert "shard metrics/0 belongs to another owner now" in error.message
    assert run.phase is Phase.FENCED
    assert other.owner in run.running.status.reason
    assert state(world) == before
    assert touched == [world.clock.now_ms()], "only the heartbeat was written, and not the release"
    check_resources_are_released(run)


def test_a_fenced_shard_answers_no_requests_though_its_reading_waits_for_kafka(
    world: World, run: ThreadedShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.start()
    run.wait_until(lambda: run.phase is Phase.ACTIVE)
    waiting, may_continue, poll = threading.Event(), threading.Event(), world.log.poll

    def wait(max_records: int, timeout: float) -> Records:
        waiting.set()
        assert may_continue.wait(PATIENCE_S)
        return poll(max_records, timeout)

    monkeypatch.setattr(world.log, "poll", wait)
    try:
        assert waiting.wait(PATIENCE_S)
        take_by_force(world)
        (storing,) = storing_threads()
        world.pass_time(HEARTBEAT_MS)
        storing.join(PATIENCE_S)
        assert not storing.is_alive()
        assert run.phase is Phase.FENCED
    finally:
        may_continue.set()
    assert isinstance(run.end(), ShardFenced)


def test_a_fencing_that_is_noticed_during_the_release_is_raised(world: World, run: ThreadedShard) -> None:
    run.start()
    take_by_force(world)
    before = state(world)
    assert isinstance(run.stop(), ShardFenced)
    assert run.phase is Phase.FENCED
    assert state(world) == before
    check_resources_are_released(run)


def test_a_fenced_shard_whose_records_are_deleted_meanwhile_ends_as_fenced(world: World, run: ThreadedShard) -> None:
    """The next owner has stored them. What an operator must know is that this shard is not the owner."""
    run.start()
    world.log.reachable = False
    produce_everywhere(world)
    take_by_force(world)
    before = state(world)
    world.log.delete_before(1)
    world.log.reachable = True
    error = run.end()
    assert isinstance(error, ShardFenced)
    assert isinstance(error.__cause__, Fenced)
    assert run.phase is Phase.FENCED
    assert state(world) == before
    check_resources_are_released(run)


def test_a_fencing_during_the_start_is_raised(world: World, run: ThreadedShard) -> None:
    def overtake(call: StoreCall) -> None:
        if call.name == "manifest":
            take_by_force(world)

    world.store.before = overtake
    assert isinstance(run.end(), ShardFenced)
    assert run.phase is Phase.FENCED
    assert world.manifest().cuts == ()
    check_resources_are_released(run)


def test_a_storing_thread_that_hangs_is_reported_and_one_that_waits_for_its_store_is_not(world: World) -> None:
    answers = [0]
    progress = StoreProgress(lambda: answers[0], silence_s=50.0)
    run = ThreadedShard(world)
    run.running = RunningShard(replace(world.parts(run.storage), store_progress=progress), accepted=Accepted())
    run.running.after_step = lambda: run.phases.append(run.phase)
    hanging, may_continue = threading.Event(), threading.Event()

    def hang(call: StoreCall) -> None:
        if call.name == "touch" and call.arguments[1] is not None:
            hanging.set()
            assert may_continue.wait(PATIENCE_S)

    def stuck_after(milliseconds: int) -> str:
        world.pass_time(milliseconds)
        for _ in range(2):
            # The thread is checked after each step, so it was checked by the end of the second one.
            run.wait_until(lambda: True)
        return run.running.status.stuck

    world.store.before = hang
    run.start()
    world.pass_time(HEARTBEAT_MS)
    assert hanging.wait(PATIENCE_S)
    for _ in range(10):
        # A call to the store continues within its own timeouts: it is retried repeatedly.
        assert stuck_after(40_000) == ""
        answers[0] += 1
        assert stuck_after(0) == ""
    with capture_logs() as lines:
        assert stuck_after(51_000) == stuck_after(1_000) == "its storing thread made no progress"
    assert [line["event"] for line in lines].count("the storing thread makes no progress") == 1
    may_continue.set()
    run.wait_until(lambda: not run.running.status.stuck)
    assert run.stop() is None


@pytest.mark.parametrize("during_release", [False, True])
def test_a_stop_does_not_wait_for_a_store_that_hangs(
    world: World, run: ThreadedShard, monkeypatch: pytest.MonkeyPatch, during_release: bool
) -> None:
    monkeypatch.setattr(running, "_STOP_TIMEOUT_S", 0.05)
    hanging, may_continue = threading.Event(), threading.Event()

    def hang(call: StoreCall) -> None:
        if call.name == "touch" and (call.arguments[1] is None) is during_release:
            hanging.set()
            assert may_continue.wait(PATIENCE_S)

    world.store.before = hang
    run.start()
    if not during_release:
        world.pass_time(HEARTBEAT_MS)
        assert hanging.wait(PATIENCE_S)
    with capture_logs() as lines:
        assert run.stop() is None
    assert run.phase is Phase.STOPPED
    assert "the shard is not released" in " ".join(line["event"] for line in lines)
    may_continue.set()
    for thread in threading.enumerate():
        if thread.name in ("storing", "releasing"):
            thread.join(PATIENCE_S)

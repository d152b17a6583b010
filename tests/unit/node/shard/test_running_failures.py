"""The end of a running shard after an error of storing, of reading, or during the start."""

import threading
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from strandline.node.shard import running
from strandline.node.shard.flusher import HEARTBEAT_MS
from strandline.node.shard.log import TopicUnfit
from strandline.node.shard.status import Phase
from strandline.store.buffer.write_buffer import WriteBuffer
from strandline.store.protocol import StoreRefused, StoreUnavailable
from support.shard_world import GRACE, HOUR, StoreCall, World, produce_everywhere
from support.threaded_shards import (
    PATIENCE_S,
    ThreadedShard,
    check_resources_are_released,
    delay_storing,
    refuse,
    state,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def run(world: World) -> ThreadedShard:
    return ThreadedShard(world)


def test_a_fatal_error_in_storing_is_raised_and_is_in_the_status(world: World, run: ThreadedShard) -> None:
    produce_everywhere(world)
    run.start()
    world.store.before = refuse("commit")
    world.pass_time(HOUR + GRACE)
    error = run.end()
    assert isinstance(error, StoreRefused)
    assert (run.phase, run.running.status.reason) == (Phase.FAILED, "no such table")
    assert state(world).seen_at is None, "it was released, so that other processes need not wait"
    check_resources_are_released(run)


def test_an_unexpected_error_in_storing_is_raised_and_logged(world: World, run: ThreadedShard) -> None:
    run.start()

    def fail(call: StoreCall) -> None:
        if call.name == "touch" and call.arguments[1] is not None:
            raise ZeroDivisionError("by nothing")

    world.store.before = fail
    with capture_logs() as lines:
        world.pass_time(HEARTBEAT_MS)
        assert isinstance(run.end(), ZeroDivisionError)
    assert (run.phase, run.running.status.reason) == (Phase.FAILED, "by nothing")
    assert "storing failed" in [line["event"] for line in lines]
    assert state(world).seen_at is None


def test_an_error_of_the_buffer_in_the_storing_thread_is_raised(
    run: ThreadedShard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_buffer: WriteBuffer) -> bool:
        raise StoreRefused("the disk is full")

    monkeypatch.setattr(WriteBuffer, "maintain", fail)
    assert isinstance(run.end(), StoreRefused)
    assert run.running.status.reason == "the disk is full"
    check_resources_are_released(run)


def test_an_error_in_storing_is_raised_though_the_release_fails_too(world: World, run: ThreadedShard) -> None:
    produce_everywhere(world)
    run.start()
    first, second = refuse("commit", "the first"), refuse("touch", "the second")

    def fail_twice(call: StoreCall) -> None:
        first(call)
        second(call) if call.name == "touch" and call.arguments[1] is None else None

    world.store.before = fail_twice
    world.pass_time(HOUR + GRACE)
    error = run.end()
    assert isinstance(error, StoreRefused)
    assert error.message == run.running.status.reason == "the first"


def test_a_fatal_error_in_reading_is_raised_and_ends_storing(world: World, run: ThreadedShard) -> None:
    run.start()
    world.log.recreate()
    error = run.end()
    assert isinstance(error, TopicUnfit)
    assert run.phase is Phase.FAILED
    assert run.running.status.reason == str(error)
    assert "topic-1 is now topic-2" in run.running.status.reason
    assert state(world).seen_at is None
    assert run.storage.closed == 1
    check_resources_are_released(run)


def test_records_that_kafka_no_longer_has_are_stored_before_it_ends(world: World) -> None:
    run = ThreadedShard(delay_storing(world))
    produce_everywhere(world)
    run.start()
    run.wait_until(lambda: run.phase is Phase.ACTIVE)
    world.pass_time(HOUR + GRACE)
    run.wait_until(lambda: run.running.status.counters.cuts == 1)
    assert len(world.manifest().groups) < world.options.groups
    world.log.recreate()
    assert isinstance(run.end(), TopicUnfit)
    assert len(world.manifest().groups) == world.options.groups
    world.check_stored_once()
    assert run.phase is Phase.FAILED
    assert run.phases[-2] is Phase.CATCHING_UP, "its answers are incomplete during the final flush"
    check_resources_are_released(run)


def test_an_unreachable_store_delays_the_end_of_a_shard_only_until_the_final_flush_times_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_DRAIN_TIMEOUT_S", 2.0)
    # Each step of the final flush takes half a second, like in a shard that waits for its store.
    world.options = replace(world.options, poll_timeout_s=0.5)
    run = ThreadedShard(delay_storing(world))
    produce_everywhere(world)
    run.start()
    run.wait_until(lambda: run.phase is Phase.ACTIVE)

    def fail(call: StoreCall) -> None:
        if call.name == "commit":
            raise StoreUnavailable("no answer")

    world.store.before = fail
    world.pass_time(HOUR + GRACE)
    run.wait_until(lambda: run.running.status.counters.cuts == 1)
    begun: list[float] = []

    def record_phase() -> None:
        run.phases.append(run.phase)
        if run.phase is Phase.CATCHING_UP:
            begun.append(world.clock.monotonic())

    run.running.after_step = record_phase
    world.log.recreate()
    assert isinstance(run.end(), TopicUnfit)
    assert world.clock.monotonic() - begun[0] <= running._DRAIN_TIMEOUT_S + 0.5
    assert world.manifest().groups == ()
    check_resources_are_released(run)


def test_an_error_at_the_start_is_raised_and_everything_is_closed(world: World, run: ThreadedShard) -> None:
    world.store.before = refuse("create_dataset")
    assert isinstance(run.end(), StoreRefused)
    assert (run.phase, run.running.status.reason) == (Phase.FAILED, "no such table")
    assert run.running.shard is None
    check_resources_are_released(run)


def test_a_retryable_error_does_not_end_the_shard(world: World, run: ThreadedShard) -> None:
    produce_everywhere(world)
    run.start()
    failed = threading.Event()

    def fail(call: StoreCall) -> None:
        if call.name in {"commit", "touch"}:
            failed.set()
            raise StoreUnavailable("no answer")

    world.store.before = fail
    world.log.reachable = False
    world.pass_time(HEARTBEAT_MS)
    assert failed.wait(PATIENCE_S)
    world.log.reachable = True
    run.wait_until(lambda: run.running.status.counters.store_retries > 0)
    assert run.running.status.counters.log_retries > 0
    assert run.stop() is None
    assert run.phase is Phase.STOPPED

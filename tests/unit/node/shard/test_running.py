"""A running shard: its two threads, and every way in which it ends."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from strandline.errors import ExitCode
from strandline.node.shard import running
from strandline.node.shard.flusher import HEARTBEAT_MS
from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.log import Records, TopicUnfit
from strandline.node.shard.options import FlushTiming
from strandline.node.shard.ownership import take_shard
from strandline.node.shard.parts import StoreProgress
from strandline.node.shard.running import RunningShard, ShardFenced
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted
from strandline.store.buffer.write_buffer import WriteBuffer
from strandline.store.protocol import Fenced, StoreRefused, StoreUnavailable
from strandline.store.rows import Ownership, ShardState
from support.shard_world import GRACE, HOUR, StoreCall, World, produce_everywhere

pytestmark = pytest.mark.unit

PATIENCE_S = 60


class WatchedStorage(MemoryStorage):
    """Signals each read of records, and its closing."""

    def __init__(self) -> None:
        self.awaited: tuple[Callable[[], bool], threading.Event] = (lambda: True, threading.Event())
        self.closed = 0

    def refresh(self, *, changed: bool, may_merge: bool = False) -> None:
        del changed, may_merge
        condition, reached = self.awaited
        if condition():
            reached.set()

    def close(self) -> None:
        self.closed += 1


class ThreadedShard:
    """A shard that runs in a thread, instead of the main thread of its process."""

    def __init__(self, world: World) -> None:
        self.world, self.storage = world, WatchedStorage()
        self.running = RunningShard(world.parts(self.storage), accepted=Accepted())
        self.phases: list[Phase] = []
        self.running.after_step = lambda: self.phases.append(self.phase)
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start, and return once it reads."""
        self._thread.start()
        self.wait_until(lambda: True)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return once a condition holds after a poll of the log."""
        # A new event: the shard's thread may be about to set that of the previous condition.
        reached = threading.Event()
        self.storage.awaited = (condition, reached)
        assert reached.wait(PATIENCE_S), f"the condition was never met: {self.error!r}"

    def end(self) -> BaseException | None:
        """Wait for its end. Returns what it raised."""
        if self._thread.ident is None:
            self._thread.start()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the shard did not end"
        assert self.phases[-1] is self.phase, "the last phase was published"
        return self.error

    def stop(self) -> BaseException | None:
        self.running.stop()
        return self.end()

    @property
    def phase(self) -> Phase:
        return self.running.status.phase

    def _run(self) -> None:
        try:
            self.running.run()
        except BaseException as error:  # noqa: BLE001 - the test inspects it
            self.error = error


@pytest.fixture
def run(world: World) -> ThreadedShard:
    return ThreadedShard(world)


def state(world: World) -> ShardState:
    state = world.sqlite.state(world.options.shard)
    assert state is not None
    return state


def take_by_force(world: World) -> Ownership:
    return take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, by_force=True)


def refuse(name: str, message: str = "no such table") -> Callable[[StoreCall], None]:
    """Let calls with this name fail with a fatal error. Of `commit`, only those that write a group row fail."""

    def hook(call: StoreCall) -> None:
        if call.name == name and (name != "commit" or call.arguments[1].groups):
            raise StoreRefused(message)

    return hook


def storing_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "storing"]


def check_resources_are_released(run: ThreadedShard) -> None:
    """Check that no thread is left, and that the log is closed."""
    assert storing_threads() == []
    with pytest.raises(RuntimeError, match="poll was called before seek"):
        run.world.log.poll(1, 0)


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


def test_a_fencing_during_the_start_is_raised(world: World, run: ThreadedShard) -> None:
    def overtake(call: StoreCall) -> None:
        if call.name == "manifest":
            take_by_force(world)

    world.store.before = overtake
    assert isinstance(run.end(), ShardFenced)
    assert run.phase is Phase.FENCED
    assert world.manifest().cuts == ()
    check_resources_are_released(run)


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


def delay_storing(world: World) -> World:
    """Delay the storing of closed buckets by nearly an hour."""
    world.options = replace(world.options, flush=FlushTiming(spread=0.9))
    return world


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

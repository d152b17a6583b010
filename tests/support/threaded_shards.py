"""A shard that runs in a thread of the test, and checks of its end."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.node.shard.index_storage import MemoryStorage
from strandline.node.shard.options import FlushTiming
from strandline.node.shard.ownership import take_shard
from strandline.node.shard.running import RunningShard
from strandline.node.shard.status import Phase
from strandline.recovery.offset_policy import Accepted
from strandline.store.protocol import StoreRefused
from strandline.store.rows import Ownership, ShardState
from support.shard_world import StoreCall, World

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


def delay_storing(world: World) -> World:
    """Delay the storing of closed buckets by nearly an hour."""
    world.options = replace(world.options, flush=FlushTiming(spread=0.9))
    return world

"""The supervisor: a thread that keeps the child processes of a node.

This thread starts them, and the kernel kills them when the thread ends, however the node ends. Calls from other threads
are queued and run by this thread in its next iteration. After each iteration it publishes the status of the processes.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from strandline.clock import Clock
from strandline.errors import Fatal, StrandlineError
from strandline.node.settings.sections import Settings
from strandline.node.status.processes import ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.keeper import KeeperSettings
from strandline.node.supervisor.partitions import CountPartitions, count_partitions, served_shards, serves_all
from strandline.node.supervisor.processes import NodeProcesses, ProcessHeartbeat
from strandline.node.supervisor.reloading import Reload, TakesEffect, reloaded
from strandline.node.throttled_warning import ThrottledWarning

_LOG = structlog.get_logger(__name__)
_LOOP_INTERVAL_S, _STOPPING_LOOP_INTERVAL_S = 0.5, 0.05
# How often the topic's partitions are counted: gateways write to new partitions at once, and answers lack their series
# until the node serves them. The shorter interval is used until the first successful count.
_COUNT_INTERVAL_S, _COUNT_RETRY_S = 15.0, 5.0
_WARNING_INTERVAL_S = 60.0


class NoSuchShard(Fatal):
    """The node does not serve the shard."""


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """The heartbeats of the supervisor's own thread, in iterations, and of each child process."""

    iterations: int = 0
    processes: tuple[ProcessHeartbeat, ...] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """The status of all processes after an iteration."""

    shards: tuple[ShardProcessStatus, ...] = ()
    others: tuple[ProcessStatus, ...] = ()
    heartbeats: Heartbeats = Heartbeats()


class Processes(Protocol):
    """Creates the keepers of all children."""

    def __call__(self, keeper_settings: KeeperSettings) -> NodeProcesses: ...


class Supervisor:
    """Keeps a process for each shard, one for the front and, while there are jobs, one for the worker. Implements
    `NodeShards`. Thread-safe.

    `assembled_supervisor` creates one with real processes.
    """

    def __init__(
        self,
        settings: Settings,
        processes: Processes,
        clock: Clock,
        *,
        count: CountPartitions = count_partitions,
        on_publish: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing happens before `start`. The supervisor's thread calls `on_publish` after each iteration."""
        self._settings, self._clock, self._count = settings, clock, count
        self.on_publish = on_publish
        self._processes = processes(KeeperSettings.of(settings.node))
        self._count_warning = ThrottledWarning("the topic's partitions can't be counted", "all", clock)
        self._served: tuple[int, ...] = ()
        self._partitions: int | None = None
        self._waits_for, self._warned = "", float("-inf")
        # The lock protects the queue of calls. What the thread publishes is replaced by one assignment.
        self._lock, self._wake, self._serving = threading.Lock(), threading.Event(), threading.Lock()
        self._submitted: deque[Callable[[], None]] = deque()
        self._published = Published()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="supervisor")
        self._counter = threading.Thread(target=self._poll_partitions, name="partitions", daemon=True)

    @property
    def settings(self) -> Settings:
        """The settings in force, reloads included."""
        return self._settings

    @property
    def waits_for(self) -> str:
        """Why the shards are not known yet (Kafka is unreachable or has no such topic); empty once they are."""
        return self._waits_for

    def start(self) -> None:
        """Start the front at once, and the shards as soon as Kafka has reported the number of partitions. Does not
        block. A listed shard that the topic lacks (`ListedShardMissing`) ends the supervisor. While Kafka is
        unreachable or has no such topic, the supervisor retries.
        """
        self._thread.start()
        self._counter.start()

    def stop(self) -> None:
        """Stop all processes, kill those that don't end within `node.stop_timeout`, and return when all have ended.
        Raises the error that ended the supervisor, if there was one. A second call only waits.
        """
        self._stopping.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.raise_failure()

    def kill(self) -> None:
        """Kill all processes and stop."""
        self._submit(self._processes.kill)
        self._stopping.set()

    def wake(self) -> None:
        """Check the processes now: one may have ended. Safe in a signal handler."""
        self._wake.set()

    def raise_failure(self) -> None:
        """Raise the error that ended the supervisor, if one did. Its processes have ended then."""
        if self._failure is not None:
            raise self._failure

    @property
    def has_ended(self) -> bool:
        """Whether its thread has ended, for any reason."""
        return self._ended.is_set()

    def reload(self, read: Settings) -> Reload:
        """Apply the new settings that can be applied at run time, count the topic's partitions, and restart processes
        that are down. Logs and returns the outcome. Raises `ListedShardMissing` without changing anything. Waits for
        Kafka's answer; without an answer, the last known number of partitions stays in force.
        """
        outcome = reloaded(self._settings, read)
        partitions = self._partitions
        try:
            partitions = self._count(outcome.settings)
        except StrandlineError as error:
            if not error.transient:
                raise
            _LOG.warning("the topic's partitions can't be counted", error=str(error))
        if partitions is not None:
            served_shards(outcome.settings, partitions)
        self._settings = outcome.settings
        keeper_settings = KeeperSettings.of(outcome.settings.node)
        self._submit(lambda: self._processes.apply(keeper_settings))
        if partitions is not None:
            self._serve(partitions)
        self._submit(self._processes.restart_if_down)
        _log_outcome(outcome)
        return outcome

    def restart_shard(self, shard: int) -> None:
        """Restart a shard, even if it is down. Raises `NoSuchShard`. Does not wait for the restart."""
        if shard not in self._served:
            served = ", ".join(map(str, self._served)) or "none yet"
            raise NoSuchShard(f"this node does not serve shard {shard}", remedy=f"It serves {served}")
        _LOG.info("restarting a shard on an operator's request", shard=shard)
        self._submit(lambda: self._processes.restart(shard))

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        """The status of the shards, by number."""
        return self._published.shards

    def partitions(self) -> int | None:
        """The topic's number of partitions; None before it is known."""
        return self._partitions

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The status of the front and the worker."""
        return self._published.others

    def heartbeats(self) -> Heartbeats:
        """The heartbeats, for systemd's watchdog."""
        return self._published.heartbeats

    def _submit(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._submitted.append(call)
        self._wake.set()

    def _serve(self, partitions: int) -> None:
        """Serve the shards that the settings list."""
        # A reload and a count may call it at the same time; the later one uses the newest settings.
        with self._serving:
            shards = served_shards(self._settings, partitions)
            self._served, self._partitions, self._waits_for = shards, partitions, ""
            self._submit(lambda: self._processes.serve(shards))

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._iterate()
                self._wake.wait(min(_LOOP_INTERVAL_S, self._processes.next_start_s))
                self._wake.clear()
            self._run_submitted()
            self._processes.stop()
            while not self._processes.has_stopped:
                self._iterate()
                self._clock.sleep(_STOPPING_LOOP_INTERVAL_S)
            self._publish()
        except BaseException as error:  # noqa: BLE001 - raised again by `raise_failure`
            self._failure = error
            _LOG.exception("the supervisor failed, and all its processes end")
        finally:
            self._ended.set()

    def _iterate(self) -> None:
        self._run_submitted()
        self._processes.check()
        self._publish()

    def _run_submitted(self) -> None:
        while True:
            with self._lock:
                if not self._submitted:
                    return
                call = self._submitted.popleft()
            call()

    def _publish(self) -> None:
        heartbeats = Heartbeats(self._published.heartbeats.iterations + 1, self._processes.heartbeats())
        self._published = Published(self._processes.shards(), self._processes.others(), heartbeats)
        self.on_publish()

    def _poll_partitions(self) -> None:
        """Poll Kafka for the number of partitions. An answer may take half a minute, so this runs in its own thread,
        and neither the supervisor's thread nor a stop waits for it.
        """
        pause = 0.0
        while not self._stopping.wait(pause) and not self._ended.is_set():
            self._update_partitions()
            pause = _COUNT_INTERVAL_S if self._partitions is not None else _COUNT_RETRY_S

    def _update_partitions(self) -> None:
        try:
            found = self._count(self._settings)
            if self._partitions is None:
                self._serve(found)
            elif found > self._partitions:
                _LOG.warning("the topic has new partitions", partitions=found, served=serves_all(self._settings))
                self._serve(found)
            self._count_warning.is_over()
        except StrandlineError as error:
            if error.transient:
                self._report_wait(str(error))
            elif self._partitions is None:
                self._failure = error
                self._ended.set()
            else:
                self._count_warning.about(error)

    def _report_wait(self, reason: str) -> None:
        """The partitions can't be counted for a reason that may be temporary."""
        now = self._clock.monotonic()
        is_new = self._partitions is None and reason != self._waits_for
        if self._partitions is None:
            self._waits_for = reason
        if is_new or now - self._warned >= _WARNING_INTERVAL_S:
            self._warned = now
            _LOG.warning("the topic's partitions can't be counted", error=reason)


def _log_outcome(outcome: Reload) -> None:
    for takes_effect in TakesEffect:
        if names := outcome.names(takes_effect):
            _LOG.info("settings changed", take_effect=takes_effect.value, names=", ".join(names))
    if not outcome.changes:
        _LOG.info("settings reloaded, none has changed")

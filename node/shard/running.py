"""Runs a shard: one thread reads, another one stores and merges, until `stop` is called or an error ends it.

A stop stores nothing that is not due: unstored records are read from Kafka again. So it takes as long as one poll and
one step of the flusher, or ten seconds if the store hangs. Nothing is lost by a stop or a kill.
"""

import threading
from collections.abc import Callable

import structlog

from strandline.errors import ExitCode, Fatal, StrandlineError
from strandline.node.shard.heap import trim_heap
from strandline.node.shard.log import OffsetGone, TopicUnfit
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.shard import Shard
from strandline.node.shard.stages import Stage
from strandline.node.shard.starting import StartStopped
from strandline.node.shard.status import Phase, Status
from strandline.node.shard.storing_watch import StoringWatch
from strandline.recovery.offset_policy import Accepted
from strandline.store.protocol import Fenced

_LOG = structlog.get_logger(__name__)
# The storing thread looks for work at least this often.
_IDLE_WAIT_S = 0.2
# How long a stop waits for the storing thread and for the store.
_STOP_TIMEOUT_S = 10.0
# How long a shard whose log is gone continues to store the buckets that only it has, and how often it checks.
_DRAIN_TIMEOUT_S = 60.0
_DRAIN_INTERVAL_S = 0.05


class ShardFenced(Fatal):
    """Another owner has taken the shard."""

    exit_code = ExitCode.FENCED


def _do_nothing() -> None:
    """The default callback."""


class RunningShard:
    """One run of a shard in a process. `run` is its main thread; `stop` may be called from a signal handler."""

    def __init__(self, parts: ShardParts, *, accepted: Accepted, take: bool = False, reads_tail: bool = True) -> None:
        """Without `reads_tail`, the shard ends once all cut buckets are stored."""
        self.status = Status()
        self.shard: Shard | None = None
        self._parts, self._accepted, self._take, self._reads_tail = parts, accepted, take, reads_tail
        self._stopping, self._draining = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self.after_step: Callable[[], None] = _do_nothing
        """Called by the shard's threads after each step of reading, and when a phase has ended the shard."""
        self._storing = StoringWatch(parts.store_progress, parts.clock)

    @property
    def parts(self) -> ShardParts:
        """The shard's options and dependencies."""
        return self._parts

    def stop(self) -> None:
        """Stop without waiting for the end."""
        self._stopping.set()

    def run(self) -> None:
        """Start, read until `stop` is called, and release the shard. Raises the error that ended it, after setting it
        in the status.
        """
        try:
            self.shard = Shard.start(
                self._parts,
                self.status,
                take=self._take,
                accepted=self._accepted,
                stopping=self._stopping.is_set,
                reads_tail=self._reads_tail,
            )
            self._read(self.shard)
        except StartStopped as error:
            self.status.reason = str(error)
        except Fenced as error:
            self._end_in(Phase.FENCED, str(error))
            raise ShardFenced(
                f"shard {self._parts.options.shard} belongs to another owner now: {error.message}",
                remedy="The other owner continues. Don't start the shard here again unless that node is gone",
            ) from error
        except BaseException as error:
            self._end_in(Phase.FAILED, str(error))
            raise
        finally:
            self._parts.dead_letters.close(timeout=5)
            self._parts.log.close()
        self._end_in(Phase.STOPPED, self.status.reason)

    def _end_in(self, phase: Phase, reason: str) -> None:
        """End the shard in this phase. From now on it answers no queries."""
        self.status.phase, self.status.reason = phase, reason
        self.after_step()

    def _read(self, shard: Shard) -> None:
        # A daemon thread: if it hangs, the process must still be able to end.
        storing = threading.Thread(target=self._store, args=(shard,), name="storing", daemon=True)
        storing.start()
        try:
            self._step_until_stopped(shard)
        except (OffsetGone, TopicUnfit):
            # The log no longer has what was read and is not stored: only this process has it.
            shard.close_at_position()
            # Publish the new state now, because the next step takes a while.
            self.after_step()
            self._draining.set()
            self._step_until_stored(shard, storing)
            raise
        finally:
            self._stopping.set()
            try:
                self._release(shard, storing)
            finally:
                # This is the reason why the shard ends, even if something else has failed since.
                if self._failure is not None:
                    raise self._failure

    def _release(self, shard: Shard, storing: threading.Thread) -> None:
        """Wait for the storing thread, and release the shard. A hanging call to the store is abandoned after a timeout,
        with the same consequences as a kill.
        """
        clock, shard_id = self._parts.clock, str(self._parts.options.shard)
        give_up_at = clock.monotonic() + _STOP_TIMEOUT_S
        storing.join(_STOP_TIMEOUT_S)
        if storing.is_alive():
            _LOG.warning("the shard is not released: the storing thread did not end in time", shard=shard_id)
            return
        # A fenced owner must not release the shard, which belongs to another owner.
        if isinstance(self._failure, Fenced):
            return
        failures: list[BaseException] = []

        def close() -> None:
            try:
                shard.close()
            except BaseException as error:  # noqa: BLE001 - raised again below
                failures.append(error)

        releasing = threading.Thread(target=close, name="releasing", daemon=True)
        releasing.start()
        releasing.join(max(0.0, give_up_at - clock.monotonic()))
        if releasing.is_alive():
            _LOG.warning("the shard is not released: the store did not answer in time", shard=shard_id)
        elif failures:
            raise failures[0]

    def _step_until_stored(self, shard: Shard, storing: threading.Thread) -> None:
        """Continue until all closed buckets are stored or the timeout is over, which the last call may exceed."""
        clock = self._parts.clock
        give_up_at = clock.monotonic() + _DRAIN_TIMEOUT_S
        while storing.is_alive() and clock.monotonic() < give_up_at:
            shard.step()
            self._watch_storing()
            self.after_step()
            storing.join(_DRAIN_INTERVAL_S)

    def _watch_storing(self) -> None:
        """Report a storing thread that makes no progress: the supervisor then kills the process."""
        stuck_s = self._storing.stuck_s()
        if stuck_s > 0 and not self.status.stuck:
            _LOG.error("the storing thread makes no progress", shard=str(self._parts.options.shard))
        self.status.stuck = "its storing thread made no progress" if stuck_s > 0 else ""

    def _step_until_stopped(self, shard: Shard) -> None:
        phase = None
        while not self._stopping.is_set() and (self._reads_tail or not shard.is_fully_stored):
            shard.step()
            self._watch_storing()
            self.after_step()
            if shard.status.phase is not phase:
                phase = shard.status.phase
                _LOG.info("phase", shard=str(self._parts.options.shard), phase=phase.value)

    def _store(self, shard: Shard) -> None:
        stages, had_closed = shard.stages, False
        try:
            while not self._stopping.is_set():
                self._storing.iterated()
                has_closed = bool(shard.flusher.closed_buckets())
                if had_closed and not has_closed:
                    trim_heap()
                had_closed = has_closed
                if self._draining.is_set() and shard.is_fully_stored:
                    return
                wait = shard.flusher.step()
                if wait > 0:
                    with stages.timing(Stage.MERGE):
                        merged = shard.buffer.maintain()
                    if not merged:
                        self._stopping.wait(min(wait, _IDLE_WAIT_S))
        except BaseException as error:  # noqa: BLE001 - raised in the reading thread
            self._failure = error
            # First of all, because reading must not continue without storing.
            self._stopping.set()
            if isinstance(error, Fenced):
                # At once, because the reading thread may wait for Kafka, and a fenced owner must not answer queries.
                self._end_in(Phase.FENCED, str(error))
            if not isinstance(error, StrandlineError):
                _LOG.exception("storing failed", shard=str(self._parts.options.shard))

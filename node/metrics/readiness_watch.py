"""How far the whole dataset is stored, looked up in the background: for metrics, for the page, and for whoever asks
over HTTP about an hour or a day.

A look reads the manifests of all partitions from the store, whichever nodes serve them. It begins where the newest
ready hour does, so that it costs the same however long the history is.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.hours import ReadyReport, ask
from strandline.node.page.hours import HourStanding, hours_between
from strandline.node.throttled_warning import ThrottledWarning
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import PartitionProgress, StoredDataset, newest_ready_hour, partition_progress

Opener = Callable[[], AbstractContextManager[Deployment]]

_LOG = structlog.get_logger(__name__)
LOOK_EVERY_S = 15.0
# How long somebody who asks waits while another's question is being answered.
_PATIENCE_S = 20.0
_END_S = 5.0


class ReadinessUnknown(Retryable):
    """Nobody can tell now whether an hour is ready."""


@dataclass(frozen=True, slots=True)
class ReadinessFigures:
    """How far the partitions were stored when that was last looked up; `looked_at` is None before the first time, and
    `began_at` is since when somebody tries. `flush_interval` is the dataset's, `kafka_retention` for how long its topic
    keeps records, None for ever; both in milliseconds.
    `failures` counts the looks that failed since the node was started.
    """

    looked_at: int | None = None
    began_at: int | None = None
    newest_ready_hour: int | None = None
    partitions: tuple[PartitionProgress, ...] = ()
    flush_interval: int | None = None
    kafka_retention: int | None = None
    failures: int = 0


class ReadinessWatch:
    """Looks every now and then, by a thread of its own. Any thread may ask it.

    Store and Kafka are opened at the first look, or once they can be: a node starts without them. Both have time-outs
    of their own. While they don't answer, what is known grows old, and its age says so.
    """

    def __init__(self, opener: Opener, clock: Clock, *, every_s: float = LOOK_EVERY_S) -> None:
        self._opener, self._clock, self._every_s = opener, clock, every_s
        self._figures = ReadinessFigures()
        self._first: int | None = None
        self._using = threading.Lock()
        self._opened = ExitStack()
        self._deployment: Deployment | None = None
        self._warning = ThrottledWarning("how far the dataset is stored could not be looked up", "all", clock)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="readiness", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._figures = replace(self._figures, began_at=self._clock.now_ms())
        self._thread.start()

    def close(self) -> None:
        """Look no more. One that hangs in a look is left to end with the process."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(_END_S)
        if self._using.acquire(timeout=_END_S):
            with self._opened:
                self._deployment = None
            self._using.release()

    def figures(self) -> ReadinessFigures:
        """What is known. Never waits."""
        return self._figures

    def look(self) -> None:
        """Look now. What goes wrong is counted and logged, and what was known before stays."""
        try:
            with self._used() as deployment:
                self._figures = self._look(deployment)
        except StrandlineError as error:
            self._fail()
            self._warning.about(error)
        except Exception:  # noqa: BLE001 - whatever it is, the next look may work, and the log has all of it
            self._fail()
            _LOG.exception("the look-up of how far the dataset is stored has failed")
        else:
            self._warning.is_over()

    def ask(self, period: Period) -> ReadyReport:
        """Whether an hour or a day is ready, by the manifests as they are now. Raises `Retryable` if nobody can tell
        now, and what keeps manifests from being understood.
        """
        with self._used() as deployment:
            return ask(deployment, period)

    def hours(self, first: int, last: int) -> tuple[HourStanding, ...]:
        """The hours from `first` to `last`, counted since the epoch, both included. Raises as `ask` does."""
        with self._used() as deployment:
            begin = deployment.cutting.bucket_of(Period(first).start) - 1
            return hours_between(deployment.stored(deployment.topic.now(), begin), first, last)

    def _look(self, deployment: Deployment) -> ReadinessFigures:
        now, topic, first = self._clock.now_ms(), deployment.topic.now(), self._first
        stored = deployment.stored(topic, first)
        found = partition_progress(stored, now)
        if first is not None and any(bucket < first for bucket in _reached(found)):
            # After a rewind, or with a partition that nobody had read: what is needed begins further back.
            stored = deployment.stored(topic)
            found = partition_progress(stored, now)
        hour = newest_ready_hour(stored)
        self._first = first_bucket_needed(_reached(found), stored, hour)
        return replace(
            self._figures,
            looked_at=now,
            newest_ready_hour=hour,
            partitions=found,
            flush_interval=deployment.cutting.flush_interval,
            kafka_retention=topic.retention_ms,
        )

    def _fail(self) -> None:
        self._figures = replace(self._figures, failures=self._figures.failures + 1)

    def _watch(self) -> None:
        while not self._ending.is_set():
            self.look()
            self._ending.wait(self._every_s)

    @contextmanager
    def _used(self) -> Iterator[Deployment]:
        """The dataset, for one at a time."""
        if not self._using.acquire(timeout=_PATIENCE_S):
            raise ReadinessUnknown(
                f"the store has not answered for {_PATIENCE_S:g} s how far the dataset is stored",
                remedy="Check that the store and Kafka are healthy, and ask again",
            )
        try:
            if self._ending.is_set():
                raise ReadinessUnknown("the node is being stopped")
            if self._deployment is None:
                self._deployment = self._opened.enter_context(self._opener())
            yield self._deployment
        finally:
            self._using.release()


def first_bucket_needed(reached: list[int], stored: StoredDataset, ready: int | None) -> int | None:
    """From which bucket on manifests tell what the next look wants to know: the bucket before the newest hour that is
    whole by what all partitions have reached, or before the newest that is `ready`; None for all, while none was read.
    """
    if not reached:
        return None
    cutting, least = stored.cutting, min(reached)
    hour = (least + 1) * cutting.flush_interval // HOUR - 1
    if ready is not None:
        hour = min(hour, ready)
    return min(least, cutting.bucket_of(hour * HOUR) - 1)


def _reached(found: tuple[PartitionProgress, ...]) -> list[int]:
    return [one.reached_bucket for one in found if one.reached_bucket is not None]

"""Reads how far all partitions of the dataset are stored: in the background for metrics, and on request for the page
and HTTP clients.

It reads the manifests of all partitions from the store, whichever nodes serve them. Polls read from the newest ready
hour on, so that their cost does not depend on the length of the history.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace

import structlog

from strandline.clock import Clock
from strandline.errors import Retryable, StrandlineError
from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.hours import ReadyReport, check_ready
from strandline.node.page.hours import HourReadiness, hours_between
from strandline.node.throttled_warning import ThrottledWarning
from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import PartitionProgress, StoredDataset, newest_ready_hour, partition_progress

Opener = Callable[[], AbstractContextManager[Deployment]]

_LOG = structlog.get_logger(__name__)
POLL_INTERVAL_S = 15.0
# How long a request waits for another one to finish.
_LOCK_TIMEOUT_S = 20.0
_JOIN_TIMEOUT_S = 5.0


class ReadinessUnknown(Retryable):
    """The readiness of an hour can't be determined now."""


@dataclass(frozen=True, slots=True)
class ReadinessFigures:
    """How far the partitions were stored at `looked_at`, the time of the last successful poll; None before the first.
    `began_at` is the start of polling. `flush_interval` is the dataset's, `kafka_retention` the topic's, None if
    unlimited; both in milliseconds. `failures` counts failed polls since the start of the process.
    """

    looked_at: int | None = None
    began_at: int | None = None
    newest_ready_hour: int | None = None
    partitions: tuple[PartitionProgress, ...] = ()
    flush_interval: int | None = None
    kafka_retention: int | None = None
    failures: int = 0


class ReadinessWatch:
    """Polls in its own thread. Thread-safe.

    The first use opens the store and the Kafka client; if this fails, the next one tries again, so that a node can
    start without them. Both have timeouts. While they don't answer, the figures keep their values, and their age rises.
    """

    def __init__(self, opener: Opener, clock: Clock, *, interval_s: float = POLL_INTERVAL_S) -> None:
        self._opener, self._clock, self._interval_s = opener, clock, interval_s
        self._figures = ReadinessFigures()
        self._first: int | None = None
        self._lock = threading.Lock()
        self._opened = ExitStack()
        self._deployment: Deployment | None = None
        self._warning = ThrottledWarning("the readiness of the dataset could not be read", "all", clock)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="readiness", daemon=True)

    def start(self) -> None:
        """Start polling."""
        self._figures = replace(self._figures, began_at=self._clock.now_ms())
        self._thread.start()

    def close(self) -> None:
        """Stop polling. A hanging poll does not block the end of the process."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_TIMEOUT_S)
        if self._lock.acquire(timeout=_JOIN_TIMEOUT_S):
            with self._opened:
                self._deployment = None
            self._lock.release()

    def figures(self) -> ReadinessFigures:
        """The figures of the last poll. Never waits."""
        return self._figures

    def poll(self) -> None:
        """Read the manifests now. Errors are counted and logged, and leave the figures unchanged."""
        try:
            with self._locked() as deployment:
                self._figures = self._read(deployment)
        except StrandlineError as error:
            self._fail()
            self._warning.about(error)
        except Exception:  # noqa: BLE001 - logged completely, and the next poll may succeed
            self._fail()
            _LOG.exception("reading the readiness of the dataset failed")
        else:
            self._warning.is_over()

    def check_ready(self, period: Period) -> ReadyReport:
        """Whether an hour or day is ready, according to the current manifests. Raises `Retryable` if this can't be
        determined now, and errors of invalid manifests.
        """
        with self._locked() as deployment:
            return check_ready(deployment, period)

    def hours(self, first: int, last: int) -> tuple[HourReadiness, ...]:
        """The hours from `first` to `last`, inclusive, numbered since the epoch. Raises the errors of `check_ready`."""
        with self._locked() as deployment:
            bucket = deployment.cutting.bucket_of(Period(first).start) - 1
            return hours_between(deployment.stored(deployment.topic.now(), bucket), first, last)

    def _read(self, deployment: Deployment) -> ReadinessFigures:
        now, topic, first = self._clock.now_ms(), deployment.topic.now(), self._first
        stored = deployment.stored(topic, first)
        found = partition_progress(stored, now)
        if first is not None and any(bucket < first for bucket in _reached(found)):
            # After a rewind, or with a newly read partition, earlier rows are needed.
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
            self.poll()
            self._ending.wait(self._interval_s)

    @contextmanager
    def _locked(self) -> Iterator[Deployment]:
        """The dataset, locked for one user at a time."""
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT_S):
            raise ReadinessUnknown(
                f"the store or Kafka has not answered for {_LOCK_TIMEOUT_S:g} s",
                remedy="Check that the store and Kafka are healthy, and try again",
            )
        try:
            if self._ending.is_set():
                raise ReadinessUnknown("the node is being stopped")
            if self._deployment is None:
                self._deployment = self._opened.enter_context(self._opener())
            yield self._deployment
        finally:
            self._lock.release()


def first_bucket_needed(reached: list[int], stored: StoredDataset, ready: int | None) -> int | None:
    """The first bucket whose rows the next poll needs: the one before the newest hour that all partitions have reached
    the end of, or before the newest `ready` hour if that is older; None for all rows, while no partition was read.
    """
    if not reached:
        return None
    cutting, lowest = stored.cutting, min(reached)
    hour = (lowest + 1) * cutting.flush_interval // HOUR - 1
    if ready is not None:
        hour = min(hour, ready)
    return min(lowest, cutting.bucket_of(hour * HOUR) - 1)


def _reached(found: tuple[PartitionProgress, ...]) -> list[int]:
    return [one.reached_bucket for one in found if one.reached_bucket is not None]

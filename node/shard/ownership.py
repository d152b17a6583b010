"""Taking ownership of a shard.

An owner raises a counter in the store, its heartbeat, every ten seconds. Another process that wants the shard observes
this counter for `OWNER_TIMEOUT_S` on its own monotonic clock, and takes over the shard if the counter did not change.
If it rises between two observations within that time, the owner is alive. There is no wait if the owner has left, or if
its process is known to be dead, as after a restart on the same machine.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal, Retryable
from strandline.recovery.worker_identity import KnownProcesses, Processes, WorkerName
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, Ownership, ShardId, ShardState

OWNER_TIMEOUT_S = 60.0
"""An owner without a heartbeat for this long is gone."""
_POLL_S = 1.0
_ATTEMPTS = 5


class StillOwned(Fatal):
    """The shard has a live owner."""

    exit_code = ExitCode.FENCED


class TakeFailed(Retryable):
    """Other processes kept taking the shard at the same time."""


class AnotherShape(Fatal):
    """The dataset was created with other settings, which can't be changed."""


@dataclass(frozen=True, slots=True)
class _Observation:
    """The state of a shard at some moment between `requested_at` and `answered_at`, by the monotonic clock."""

    requested_at: float
    answered_at: float
    state: ShardState


def _ignore(_reason: str) -> None:
    """Wait without reporting."""


def take_shard(
    store: Store,
    shard: ShardId,
    topic_id: str,
    clock: Clock,
    processes: KnownProcesses | None = None,
    *,
    by_force: bool = False,
    on_wait: Callable[[str], None] = _ignore,
) -> Ownership:
    """Become the owner of a shard. The previous owner is fenced from now on. Raises `StillOwned` if it is alive, unless
    the shard is taken `by_force`. While the owner is observed, `on_wait` is called every second with a message, and may
    raise.
    """
    known = processes if processes is not None else Processes()
    for _ in range(_ATTEMPTS):
        observed = _observe(store, shard, clock)
        if not by_force and observed is not None:
            observed = _wait_until_gone(store, shard, observed, clock=clock, processes=known, on_wait=on_wait)
        state = observed.state if observed is not None else None
        # With a random suffix, so that a read after a take that timed out can't mistake another process's for ours.
        owner = f"{known.this_worker()}/{secrets.token_hex(16)}"
        ownership = store.take(shard, owner, state, now=clock.now_ms(), topic_id=topic_id)
        if ownership is not None:
            return ownership
    raise TakeFailed(
        f"shard {shard} was taken by other processes {_ATTEMPTS} times in a row",
        remedy="Check which other processes start it",
    )


def describe_owner(state: ShardState) -> str:
    """Describe the owner of a shard: its process, its host, and when it was last seen, by its own clock."""
    process = WorkerName.parse(_process(state))
    who = f"process {process.pid} on {process.host}" if process is not None else f"owner {state.owner}"
    if state.seen_at is None:
        return f"{who}, which has left"
    seen = datetime.fromtimestamp(state.seen_at / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"{who}, seen at {seen} by its clock"


def attempt_prefix(ownership: Ownership) -> str:
    """The prefix of an owner's attempts, which is unique to the owner."""
    return f"{ownership.owner.rpartition('/')[2]}.{ownership.epoch}"


def ensure_dataset(store: Store, wanted: DatasetShape) -> DatasetShape:
    """Create the dataset, or check that it exists with the same flush interval, number of groups and key hash."""
    stored = store.create_dataset(wanted)
    for name, setting in (
        ("flush_interval", "dataset.flush_interval"),
        ("groups", "dataset.groups"),
        ("key_hash", "the key hash"),
    ):
        was, is_now = getattr(stored, name), getattr(wanted, name)
        if was != is_now:
            unit = " ms" if name == "flush_interval" else ""
            raise AnotherShape(
                f"dataset {wanted.dataset!r} was created with {setting} = {was}{unit}, which can't be changed to "
                f"{is_now}{unit}",
                remedy=f"Set {setting} back, or use another dataset: the stored data depends on it",
            )
    return stored


def _observe(store: Store, shard: ShardId, clock: Clock) -> _Observation | None:
    requested_at = clock.monotonic()
    state = store.state(shard)
    return _Observation(requested_at, clock.monotonic(), state) if state is not None else None


def _wait_until_gone(
    store: Store,
    shard: ShardId,
    first: _Observation,
    *,
    clock: Clock,
    processes: KnownProcesses,
    on_wait: Callable[[str], None],
) -> _Observation:
    """The first observation in which the owner is gone. Raises `StillOwned` as soon as it is known to be alive."""
    since = before = observed = first
    while not _is_known_to_be_gone(observed.state, processes):
        if _is_alive(before, observed) or processes.is_alive(_process(observed.state)):
            raise StillOwned(
                f"shard {shard} has a live owner: {describe_owner(observed.state)}",
                remedy="Stop that process first, or use --take to take over the shard from it",
            )
        if _heartbeat(since.state) != _heartbeat(observed.state):
            since = observed
        if _has_expired(since, observed):
            break
        remaining_s = OWNER_TIMEOUT_S - (clock.monotonic() - since.answered_at)
        on_wait(f"observing for {remaining_s:.0f} s more whether the owner is gone: {describe_owner(observed.state)}")
        clock.sleep(_POLL_S)
        before, observed = observed, _observe(store, shard, clock) or observed
    return observed


def _is_alive(before: _Observation, now: _Observation) -> bool:
    """Whether an owner has written a heartbeat between two observations, less than the timeout ago. If this process was
    suspended between the observations, a later owner may be gone again.
    """
    return _heartbeat(before.state) != _heartbeat(now.state) and now.answered_at - before.requested_at < OWNER_TIMEOUT_S


def _has_expired(since: _Observation, now: _Observation) -> bool:
    """Whether an owner has had no heartbeat for the timeout, by two observations of the same heartbeat. An observation
    counts as old as its request, because this process may have been suspended before it used the answer.
    """
    return now.requested_at - since.answered_at >= OWNER_TIMEOUT_S


def _is_known_to_be_gone(state: ShardState, processes: KnownProcesses) -> bool:
    process = _process(state)
    # A process has at most one owner of a shard at a time: an earlier owner in this process is gone.
    return state.seen_at is None or process == processes.this_worker() or processes.is_gone(process)


def _process(state: ShardState) -> str:
    """The name of the owner's process, for `KnownProcesses`. What an older version wrote is not such a name."""
    return state.owner.rpartition("/")[0]


def _heartbeat(state: ShardState) -> tuple[int, str, int, int | None]:
    # An owner of an older version does not count its heartbeats, but each has a different time.
    return state.epoch, state.owner, state.beats, state.seen_at

"""Taking a shard: who may, and how.

An owner raises a counter in the store every ten seconds. Whoever wants the shard of an owner that has not left watches
that counter for a term on its own monotonic clock, and takes the shard if it stood still. If the counter rises between
two looks within a term, the owner lives. There is no need to watch where the owner's process is known to be dead, as
after a restart on the same machine.
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
"""An owner whose counter stood still for so long is gone."""
_POLL_S = 1.0
_ATTEMPTS = 5


class StillOwned(Fatal):
    """The shard's owner lives."""

    exit_code = ExitCode.FENCED


class TakeFailed(Retryable):
    """Others kept taking the shard at the same time."""


class AnotherShape(Fatal):
    """The dataset was made with other settings, which can't be changed."""


@dataclass(frozen=True, slots=True)
class _Observation:
    """The state of a shard as it was at some moment between `requested_at` and `answered_at`, by the monotonic clock."""

    requested_at: float
    answered_at: float
    state: ShardState


def _ignore(_reason: str) -> None:
    """Wait without a word."""


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
    """Become the owner of a shard; whoever was is fenced from now on. Raises `StillOwned` if that one lives, unless it
    is to be taken `by_force`. `on_wait` is called every second while the owner is watched, with what there is to say,
    and may raise.
    """
    known = processes if processes is not None else Processes()
    for _ in range(_ATTEMPTS):
        observed = _observe(store, shard, clock)
        if not by_force and observed is not None:
            observed = _wait_until_gone(store, shard, observed, clock=clock, processes=known, on_wait=on_wait)
        state = observed.state if observed is not None else None
        # Random at its end, so that a read after a take that timed out can't mistake another's for ours.
        owner = f"{known.this_worker()}/{secrets.token_hex(16)}"
        ownership = store.take(shard, owner, state, now=clock.now_ms(), topic_id=topic_id)
        if ownership is not None:
            return ownership
    raise TakeFailed(f"shard {shard} was taken by others {_ATTEMPTS} times in a row", remedy="See who else starts it")


def describe_owner(state: ShardState) -> str:
    """The owner of a shard for people: its process, its host, and when it was last seen, by its own clock."""
    process = WorkerName.parse(_process(state))
    who = f"process {process.pid} on {process.host}" if process is not None else f"owner {state.owner}"
    if state.seen_at is None:
        return f"{who}, which has left"
    seen = datetime.fromtimestamp(state.seen_at / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"{who}, seen at {seen} by its clock"


def attempt_prefix(ownership: Ownership) -> str:
    """What the attempts of an owner begin with: no other owner's do."""
    return f"{ownership.owner.rpartition('/')[2]}.{ownership.epoch}"


def ensure_dataset(store: Store, wanted: DatasetShape) -> DatasetShape:
    """Make the dataset, or find it with the same flush interval, number of groups and key hash."""
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
                f"dataset {wanted.dataset!r} was made with {setting} = {was}{unit}, and now it is {is_now}{unit}",
                remedy=f"Set {setting} back, or use another dataset: what is stored depends on it",
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
    """The first observed that finds the owner gone. Raises `StillOwned` as soon as it is known to live."""
    since = before = observed = first
    while not _is_known_to_be_gone(observed.state, processes):
        if _is_alive(before, observed) or processes.is_alive(_process(observed.state)):
            raise StillOwned(
                f"shard {shard} has a live owner: {describe_owner(observed.state)}",
                remedy="Stop that process first, or use --take to take the shard from it",
            )
        if _heartbeat(since.state) != _heartbeat(observed.state):
            since = observed
        if _has_expired(since, observed):
            break
        remaining_s = OWNER_TIMEOUT_S - (clock.monotonic() - since.answered_at)
        on_wait(f"watching for {remaining_s:.0f} s more whether the owner is gone: {describe_owner(observed.state)}")
        clock.sleep(_POLL_S)
        before, observed = observed, _observe(store, shard, clock) or observed
    return observed


def _is_alive(before: _Observation, now: _Observation) -> bool:
    """Whether an owner has written between two looks, and less than a term ago. Between looks that are further apart,
    since this process stood still, an owner may have come and gone again.
    """
    return _heartbeat(before.state) != _heartbeat(now.state) and now.answered_at - before.requested_at < OWNER_TIMEOUT_S


def _has_expired(since: _Observation, now: _Observation) -> bool:
    """Whether an owner has written nothing for a term, by two observations of the same heartbeat. An observation may be
    as old as its request, because this process may have been suspended before it used the answer.
    """
    return now.requested_at - since.answered_at >= OWNER_TIMEOUT_S


def _is_known_to_be_gone(state: ShardState, processes: KnownProcesses) -> bool:
    process = _process(state)
    # A process has one owner of a shard at a time: an earlier one of this process is gone.
    return state.seen_at is None or process == processes.this_worker() or processes.is_gone(process)


def _process(state: ShardState) -> str:
    """The name of the owner's process, as `Processes` knows it; what an older version wrote is none."""
    return state.owner.rpartition("/")[0]


def _heartbeat(state: ShardState) -> tuple[int, str, int, int | None]:
    # An owner of the version before does not count its heartbeats, but each has another time.
    return state.epoch, state.owner, state.beats, state.seen_at

"""Long random histories of a node's processes: the rules on restarts always hold."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.errors import ExitCode
from strandline.node.exit_reason import ExitReason
from strandline.node.shard.status import Phase
from strandline.node.status.processes import FRONT, WORKER, ProcessState

pytestmark = pytest.mark.unit

SHARDS = 3
ALL = (*range(SHARDS), FRONT, WORKER)
CODES = (ExitCode.OK, ExitCode.FAILED, ExitCode.DATA_LOST, ExitCode.FENCED, ExitCode.USAGE, -9, -11)

EVENTS = st.one_of(
    st.tuples(st.just("end"), st.sampled_from(ALL), st.sampled_from(CODES), st.booleans()),
    st.tuples(st.just("phase"), st.integers(0, SHARDS - 1), st.sampled_from(list(Phase)), st.booleans()),
    st.tuples(st.just("jobs"), st.integers(0, SHARDS - 1), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("hang"), st.sampled_from(ALL), st.none(), st.booleans()),
    st.tuples(st.just("wait"), st.integers(1, 120), st.none(), st.booleans()),
    st.tuples(st.just("no launch"), st.just(0), st.none(), st.booleans()),
    st.tuples(st.just("locked"), st.just(0), st.none(), st.booleans()),
)


def apply_event(world, event) -> None:
    kind, number, value, flag = event
    processes = [child for child in world.launched if child.name == number]
    child = processes[-1] if kind in ("end", "phase", "hang", "jobs") and processes else None
    match kind:
        case "end" if child is not None and child.code is None:
            child.code, child.reason = value, ExitReason("it failed", retryable=flag)
        case "phase" if child is not None:
            child.phase = value
        case "jobs" if child is not None:
            child.phase, child.jobs = Phase.REPLAYING, value
        case "hang" if child is not None:
            child.iterating, child.is_unresponsive, child.ignores_sigterm = False, flag, True
        case "wait":
            world.pass_time(number, step=2.0)
        case "no launch":
            world.launch_fails = flag
        case "locked":
            world.folder_is_locked = flag
    world.check()


@settings(max_examples=150)
@given(st.lists(EVENTS, max_size=60))
def test_no_shard_is_restarted_more_often_than_allowed_and_a_stop_always_ends(world_of, events) -> None:
    world = world_of()
    world.serve(*range(SHARDS))
    world.check()
    for event in events:
        apply_event(world, event)
    policy = world.settings.restarting
    for shard in range(SHARDS):
        # Restarts after fencing don't count, and the first start is not a restart.
        children = [child for child in world.launched if child.name == shard]
        counted = [
            child.started_at
            for before, child in pairwise(children)
            if before.code != ExitCode.FENCED and before.phase is not Phase.FENCED
        ]
        for first in counted:
            within = [started_at for started_at in counted if first <= started_at < first + policy.window_s]
            assert len(within) <= policy.restarts, (shard, within)
    for name in ALL:
        alive = [child for child in world.launched if child.name == name and child.code is None]
        assert len(alive) <= 1, f"never two processes of {name}"
    if world.other(FRONT).state is ProcessState.DOWN:
        assert world.child(FRONT).code == ExitCode.DATA_LOST, "the front is restarted indefinitely"
    for child in world.launched:
        child.ignores_sigterm = True
    world.processes.stop()
    world.pass_time(world.settings.stop_timeout_s + 1)
    assert world.processes.has_stopped
    assert all(child.code is not None for child in world.launched)


@settings(max_examples=100)
@given(st.lists(EVENTS.filter(lambda event: event[0] != "no launch"), max_size=60))
def test_failures_of_other_shards_never_affect_a_healthy_one(world_of, events) -> None:
    world = world_of()
    world.serve(*range(SHARDS))
    world.check()
    healthy = world.activate(0)
    for event in events:
        if event[0] in ("wait", "locked") or event[1] != 0:
            apply_event(world, event)
    assert healthy is world.child(0)
    assert (healthy.code, healthy.terminated_at, healthy.killed_at) == (None, None, None)
    assert world.status(0).state is ProcessState.RUNNING
    assert world.status(0).is_active

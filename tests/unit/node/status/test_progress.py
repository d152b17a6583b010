"""Descriptions of the progress of a shard's start."""

from dataclasses import replace

import pytest

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.node.status.progress import describe

pytestmark = pytest.mark.unit

NOW = 10_000_000


def status(phase: Phase, fraction: float | None, seconds: float, **more) -> Status:
    return Status(phase=phase, fraction=fraction, entered={phase.value: NOW - round(seconds * 1000)}, **more)


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (status(Phase.ACTIVE, None, 60), "active"),
        (status(Phase.ACQUIRING, None, 60), "acquiring"),
        (status(Phase.RECOVERING_INDEX, 0.0, 60), "recovering-index 0 %"),
        (status(Phase.RECOVERING_INDEX, 0.5, 30), "recovering-index 50 %, about 30 s left"),
        (status(Phase.REPLAYING, 0.5, 7200), "replaying 50 %, about 2.0 h left"),
        (status(Phase.CATCHING_UP, None, 60, lag=1234), "catching-up, 1234 records behind"),
        (status(Phase.CATCHING_UP, 0.5, 30, lag=1234), "catching-up 50 %, 1234 records behind, about 30 s left"),
    ],
)
def test_a_running_shard_is_described_by_its_phase(now: Status, words: str) -> None:
    shard = ShardProcessStatus(0, ProcessState.RUNNING, pid=7, report=ShardReport(now, ProcessFigures(7, 0.0, 0, 0)))
    assert describe(shard, NOW) == words


def test_a_shard_without_a_process_is_described_by_the_reason() -> None:
    assert describe(ShardProcessStatus(0, ProcessState.STARTING, pid=7), NOW) == "starting"
    assert describe(ShardProcessStatus(0, ProcessState.STOPPED), NOW) == "stopped"
    assert describe(ShardProcessStatus(0, ProcessState.WAITING, starts_in_s=3.6), NOW) == "starts again in 4 s"
    assert describe(ShardProcessStatus(0, ProcessState.DOWN, reason="no"), NOW) == "down: no"


def test_an_unresponsive_store_is_named_with_the_phase() -> None:
    report = ShardReport(Status(phase=Phase.ACTIVE), ProcessFigures(1, 0.0, 0, 0), store=StoreFigures("a", 90.0, 3))
    status = ShardProcessStatus(0, ProcessState.RUNNING, report=report)
    assert describe(status, NOW) == "active, its store has not answered for 2 min"
    assert (status.is_active, status.is_ready) == (True, False)
    ended = replace(status, state=ProcessState.WAITING, reason="killed")
    assert (ended.store_unanswered_s, ended.is_ready) == (None, False)

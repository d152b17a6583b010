"""Heartbeats, and how long a child process may go without one."""

import pytest

from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.supervisor.child_report import ChildReport, ProcessReport, child_report, parse_process_report
from strandline.node.supervisor.liveness import START_TIMEOUT_FACTOR, Liveness, Observation, Stage

pytestmark = pytest.mark.unit

PROCESS = ProcessFigures(7, 1.5, 100, 200)
OTHERS = (Stage.BEHIND, Stage.STEADY, Stage.ENDING)


def reported(phase: Phase, turns: int = 0) -> ChildReport:
    return child_report(ShardReport(Status(phase=phase, turns=turns), PROCESS))


@pytest.mark.parametrize("stage", list(Stage))
def test_an_iteration_is_a_sign_of_life(stage: Stage) -> None:
    after = Liveness(0.0, stage, ("x", 7)).after(Observation(stage, ("x", 8)), 10.0)
    assert (after.at, after.progress, after.beats) == (10.0, ("x", 8), 1)


def test_a_new_phase_is_a_sign_of_life() -> None:
    before = Liveness(0.0, Stage.STARTING, reported(Phase.ACQUIRING).progress)
    assert before.after(Observation(Stage.STARTING, reported(Phase.RECOVERING_INDEX).progress), 10.0).at == 10.0


def test_a_repeated_report_is_no_sign_of_life() -> None:
    assert Liveness(0.0, Stage.STEADY, ("x", 7), 1.0).after(Observation(Stage.STEADY, ("x", 7), 1.0), 10.0).at == 0.0


@pytest.mark.parametrize("stage", [Stage.STARTING, Stage.BEHIND])
def test_cpu_time_is_a_sign_of_life_until_a_child_is_steady(stage: Stage) -> None:
    assert Liveness(0.0, stage, ("x", 7), 1.0).after(Observation(stage, ("x", 7), 1.5), 10.0).at == 10.0


@pytest.mark.parametrize("stage", [Stage.STEADY, Stage.ENDING])
def test_a_child_that_spins_without_iterating_is_not_alive(stage: Stage) -> None:
    assert Liveness(0.0, stage, ("x", 7), 1.0).after(Observation(stage, ("x", 7), 11.0), 10.0).at == 0.0


def test_cpu_time_of_idle_client_threads_is_no_work() -> None:
    assert Liveness(0.0, cpu_seconds=1.0).after(Observation(cpu_seconds=1.1), 10.0).at == 0.0


def test_cpu_time_counts_from_the_first_observation() -> None:
    first = Liveness(0.0).after(Observation(cpu_seconds=5.0), 2.0)
    assert (first.at, first.cpu_seconds) == (0.0, 5.0)
    assert first.after(Observation(cpu_seconds=6.0), 4.0).at == 4.0


def test_a_start_may_be_silent_for_longer() -> None:
    assert not Liveness(0.0, Stage.STARTING).hangs(60.0 * START_TIMEOUT_FACTOR - 1, 60.0)
    assert Liveness(0.0, Stage.STARTING).hangs(60.0 * START_TIMEOUT_FACTOR, 60.0)


@pytest.mark.parametrize("stage", OTHERS)
def test_a_running_process_may_not_be_silent_for_longer(stage: Stage) -> None:
    assert not Liveness(0.0, stage).hangs(59.0, 60.0)
    assert Liveness(0.0, stage).hangs(60.0, 60.0)


def test_time_without_observations_does_not_count() -> None:
    assert not Liveness(0.0, Stage.STEADY).discounting(3600.0).hangs(3630.0, 60.0)


def test_every_phase_of_a_shard_has_its_stage() -> None:
    stages = {phase: reported(phase).stage for phase in Phase}
    assert [phase for phase, stage in stages.items() if stage is Stage.STARTING] == [
        Phase.ACQUIRING,
        Phase.RECOVERING_INDEX,
    ]
    assert [phase for phase, stage in stages.items() if stage is Stage.BEHIND] == [Phase.REPLAYING, Phase.CATCHING_UP]
    assert [phase for phase, stage in stages.items() if stage is Stage.STEADY] == [Phase.ACTIVE]
    assert [phase for phase in Phase if reported(phase).fenced] == [Phase.FENCED]


def test_the_front_and_the_worker_report_what_a_keeper_needs() -> None:
    report = parse_process_report(ProcessReport(PROCESS, Stage.STEADY, 12).to_json())
    assert report == ChildReport(PROCESS, Stage.STEADY, ("steady", 12))


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b'{"process": {}, "stage": "steady", "iterations": 1}'])
def test_an_invalid_report_is_an_expected_error(document: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse_process_report(document)

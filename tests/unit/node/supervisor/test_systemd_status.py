"""The notifications of a node to systemd."""

from dataclasses import replace

import pytest

from strandline.errors import ExitCode
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.status.processes import FRONT, WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.processes import ProcessHeartbeat
from strandline.node.supervisor.supervisor import Heartbeats
from strandline.node.supervisor.systemd_status import (
    EXTENSION_S,
    NodeObservation,
    Notified,
    is_settled,
    notifications,
    status_text,
)

pytestmark = pytest.mark.unit

EXTEND = f"EXTEND_TIMEOUT_USEC={EXTENSION_S * 1_000_000}"
WATCHDOG_S = 60.0


def running(shard: int, phase: Phase, *, pid: int = 7, **status) -> ShardProcessStatus:
    report = ShardReport(Status(phase=phase, **status), ProcessFigures(pid, 0.0, 0, 0))
    return ShardProcessStatus(shard, ProcessState.RUNNING, pid=pid, report=report)


def active(shard: int) -> ShardProcessStatus:
    return running(shard, Phase.ACTIVE)


def down(shard: int) -> ShardProcessStatus:
    return ShardProcessStatus(shard, ProcessState.DOWN, exit_code=3, reason="[3, 9) is lost")


def waiting(shard: int, code: int) -> ShardProcessStatus:
    return ShardProcessStatus(shard, ProcessState.WAITING, exit_code=code, starts_in_s=12.3, reason="it failed")


def observed(*shards: ShardProcessStatus, now: float = 0.0, heartbeats: Heartbeats | None = None) -> NodeObservation:
    return NodeObservation(shards, heartbeats or Heartbeats(), now, 1_000_000)


def lines(notified: Notified, *observations: NodeObservation, watchdog_s: float | None = None) -> list[tuple[str, ...]]:
    """The notifications at each observation, without the status."""
    out = []
    for observation in observations:
        assignments, notified = notifications(notified, observation, watchdog_s)
        out.append(tuple(line for line in assignments if not line.startswith("STATUS=")))
    return out


class TestReady:
    def test_ready_is_sent_once_when_all_shards_are_active(self) -> None:
        observations = [
            observed(),
            observed(running(0, Phase.CATCHING_UP), active(1)),
            observed(active(0), active(1)),
            observed(active(0), active(1)),
            observed(running(0, Phase.REPLAYING), active(1)),
            observed(active(0), active(1)),
        ]
        assert [("READY=1" in line) for line in lines(Notified(), *observations)] == [
            False,
            False,
            True,
            False,
            False,
            False,
        ]

    @pytest.mark.parametrize(
        ("shards", "settled"),
        [
            ((), False),
            ((active(0),), True),
            ((active(0), down(1)), True),
            ((active(0), waiting(1, ExitCode.FENCED)), True),
            ((active(0), waiting(1, ExitCode.FAILED)), True),
            ((waiting(0, ExitCode.FAILED), waiting(1, ExitCode.FAILED)), False),
            ((active(0), ShardProcessStatus(1, ProcessState.STARTING)), False),
            ((active(0), running(1, Phase.REPLAYING)), False),
            ((down(0), down(1)), False),
        ],
    )
    def test_a_start_is_over_when_no_shard_is_starting_and_some_are_active(self, shards, settled: bool) -> None:
        assert is_settled(shards) is settled

    @pytest.mark.parametrize(
        ("state", "ready"),
        [
            (ProcessState.STARTING, False),
            (ProcessState.RUNNING, True),
            (ProcessState.WAITING, True),
            (ProcessState.DOWN, True),
        ],
    )
    def test_a_front_that_starts_is_waited_for_and_one_that_fails_is_not(
        self, state: ProcessState, ready: bool
    ) -> None:
        processes = (ProcessStatus(FRONT, state), ProcessStatus(WORKER, ProcessState.STARTING))
        notified = lines(Notified(), replace(observed(active(0)), processes=processes))
        assert ("READY=1" in notified[0]) is ready


class TestExtension:
    @pytest.mark.parametrize(
        "further",
        [
            {"turns": 6},
            {"fraction": 0.6},
            {"lag": 90},
        ],
    )
    def test_a_start_that_makes_progress_has_its_timeout_extended(self, further) -> None:
        before = running(0, Phase.REPLAYING, turns=5, fraction=0.5, lag=100)
        status = {"turns": 5, "fraction": 0.5, "lag": 100} | further
        observations = [observed(before), observed(running(0, Phase.REPLAYING, **status), now=10.0)]
        assert lines(Notified(), *observations) == [(EXTEND,), (EXTEND,)]

    def test_a_start_without_progress_has_no_extension(self) -> None:
        stuck = running(0, Phase.REPLAYING, turns=5, fraction=0.5, lag=100)
        observations = [observed(stuck, now=10.0 * n) for n in range(5)]
        assert lines(Notified(), *observations) == [(EXTEND,), (), (), (), ()]

    def test_iterations_of_active_shards_are_no_progress_of_the_start(self) -> None:
        stuck = ShardProcessStatus(1, ProcessState.STARTING)
        observations = [observed(running(0, Phase.ACTIVE, turns=n), stuck, now=10.0 * n) for n in range(3)]
        assert lines(Notified(), *observations) == [(), (), ()]

    @pytest.mark.parametrize("shards", [(down(0), down(1)), (down(0), waiting(1, ExitCode.FAILED))])
    def test_a_node_that_can_only_wait_has_its_timeout_extended(self, shards) -> None:
        observations = [observed(*shards, now=10.0 * n) for n in range(3)]
        assert lines(Notified(), *observations) == [(EXTEND,), (EXTEND,), (EXTEND,)]

    def test_a_node_that_waits_for_kafka_has_its_timeout_extended(self) -> None:
        observations = [replace(observed(now=10.0 * n), waits_for="no broker answers") for n in range(2)]
        assert lines(Notified(), *observations) == [(EXTEND,), (EXTEND,)]

    def test_the_timeout_is_not_extended_with_every_observation(self) -> None:
        observations = [observed(running(0, Phase.REPLAYING, turns=n), now=1.0 * n) for n in range(12)]
        assert [bool(line) for line in lines(Notified(), *observations)] == [n in (0, 10) for n in range(12)]

    def test_the_timeout_is_not_extended_once_it_is_ready(self) -> None:
        observations = [observed(running(0, Phase.REPLAYING, turns=n), now=10.0 * n) for n in range(3)]
        assert lines(Notified(ready=True), *observations) == [(), (), ()]


class TestWatchdog:
    def fed(self, *heartbeats: Heartbeats) -> list[bool]:
        observations = [
            observed(active(0), now=30.0 * n, heartbeats=heartbeat) for n, heartbeat in enumerate(heartbeats)
        ]
        return ["WATCHDOG=1" in line for line in lines(Notified(ready=True), *observations, watchdog_s=WATCHDOG_S)]

    def test_the_watchdog_is_fed_twice_in_its_timeout_while_all_loops_iterate(self) -> None:
        observations = [
            observed(
                active(0),
                now=5.0 * n,
                heartbeats=Heartbeats(n + 1, (ProcessHeartbeat("shard 0", 7, n, must_iterate=True),)),
            )
            for n in range(13)
        ]
        fed = ["WATCHDOG=1" in line for line in lines(Notified(ready=True), *observations, watchdog_s=WATCHDOG_S)]
        assert fed == [n in (0, 6, 12) for n in range(13)]

    def test_the_watchdog_is_not_fed_while_an_active_shard_hangs(self) -> None:
        first = (
            ProcessHeartbeat("shard 0", 7, 5, must_iterate=True),
            ProcessHeartbeat("shard 1", 8, 5, must_iterate=True),
        )
        stuck = (
            ProcessHeartbeat("shard 0", 7, 9, must_iterate=True),
            ProcessHeartbeat("shard 1", 8, 5, must_iterate=True),
        )
        recovered = (
            ProcessHeartbeat("shard 0", 7, 9, must_iterate=True),
            ProcessHeartbeat("shard 1", 8, 6, must_iterate=True),
        )
        heartbeats = [Heartbeats(1, first), Heartbeats(2, stuck), Heartbeats(3, stuck), Heartbeats(4, recovered)]
        assert self.fed(*heartbeats) == [True, False, False, True]

    def test_the_watchdog_is_not_fed_while_the_front_hangs(self) -> None:
        before, stuck = (ProcessHeartbeat(FRONT, 7, beats, must_iterate=True) for beats in (5, 5))
        assert self.fed(Heartbeats(1, (before,)), Heartbeats(2, (stuck,))) == [True, False]

    def test_the_watchdog_is_not_fed_while_the_supervisor_hangs(self) -> None:
        assert self.fed(Heartbeats(1), Heartbeats(1), Heartbeats(2)) == [True, False, True]

    def test_a_shard_without_a_process_is_not_waited_for(self) -> None:
        assert self.fed(
            Heartbeats(1, (ProcessHeartbeat("shard 0", 7, 5, must_iterate=True),)),
            Heartbeats(2, (ProcessHeartbeat("shard 0", None),)),
            Heartbeats(3, (ProcessHeartbeat("shard 0", None),)),
        ) == [True, True, True]

    def test_a_shard_that_starts_or_was_just_started_is_not_waited_for(self) -> None:
        assert self.fed(
            Heartbeats(1, (ProcessHeartbeat("shard 0", 7, 5, must_iterate=True),)),
            Heartbeats(2, (ProcessHeartbeat("shard 0", 8, 0),)),
            Heartbeats(3, (ProcessHeartbeat("shard 0", 8, 0),)),
            Heartbeats(4, (ProcessHeartbeat("shard 0", 9, 0, must_iterate=True),)),
        ) == [True, True, True, True]

    def test_without_a_watchdog_timeout_it_is_not_fed(self) -> None:
        assert lines(Notified(ready=True), observed(active(0), heartbeats=Heartbeats(1))) == [()]


class TestStatus:
    def test_it_names_the_shards_that_are_not_active_worst_first(self) -> None:
        replaying = running(0, Phase.REPLAYING, fraction=0.43, entered={"replaying": 1_000_000 - 120_000})
        status = status_text(observed(replaying, active(1), waiting(2, 1), down(3)))
        assert status == (
            "1 of 4 shards active; shard 3 down: [3, 9) is lost; shard 2 starts again in 12 s: it failed; "
            "shard 0 replaying 43 %, about 3 min left"
        )

    def test_shards_beyond_the_first_few_are_counted(self) -> None:
        status = status_text(observed(*(ShardProcessStatus(n, ProcessState.STARTING) for n in range(12))))
        assert status.startswith("0 of 12 shards active; shard 0 starting; ")
        assert status.endswith("; shard 7 starting; and 4 more")

    def test_a_front_and_a_worker_that_should_run_and_do_not_are_named_with_the_reason(self) -> None:
        processes = (
            ProcessStatus(FRONT, ProcessState.WAITING, starts_in_s=4.2, reason="was ended by SIGKILL"),
            ProcessStatus(WORKER, ProcessState.DOWN, reason="no Java was found"),
        )
        assert status_text(replace(observed(active(0)), processes=processes)) == (
            "1 of 1 shard active; front starts again in 4 s: was ended by SIGKILL; worker down: no Java was found"
        )

    @pytest.mark.parametrize("state", [ProcessState.STARTING, ProcessState.RUNNING, ProcessState.STOPPED])
    def test_running_or_stopped_processes_are_not_named(self, state: ProcessState) -> None:
        processes = (ProcessStatus(FRONT, state), ProcessStatus(WORKER, state))
        assert status_text(replace(observed(active(0)), processes=processes)) == "1 of 1 shard active"

    def test_without_shards_it_names_what_it_waits_for(self) -> None:
        assert status_text(observed()) == "starting"
        assert status_text(replace(observed(), waits_for="no broker answers")) == "waiting for Kafka: no broker answers"

    def test_a_changed_status_is_sent_as_the_last_assignment_of_a_message(self) -> None:
        first, notified = notifications(Notified(), observed(active(0)), None)
        assert first == ("READY=1", "STATUS=1 of 1 shard active")
        assert notifications(notified, observed(active(0)), None)[0] == ()
        assert notifications(notified, observed(down(0)), None)[0] == (
            "STATUS=0 of 1 shard active; shard 0 down: [3, 9) is lost",
        )

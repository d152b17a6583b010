"""The differences between shards and the front and the replay worker, which have the same keeper."""

import pytest

from strandline.errors import ExitCode
from strandline.node.exit_reason import ExitReason
from strandline.node.shard.status import Phase
from strandline.node.status.processes import FRONT, WORKER, ProcessState

pytestmark = pytest.mark.unit


@pytest.fixture
def node(world):
    """Two active shards, and a front."""
    world.serve(0, 1)
    world.check()
    for shard in (0, 1):
        world.activate(shard)
    return world


class TestFront:
    def test_it_is_started_before_any_shard_is_known(self, world) -> None:
        world.check()
        world.check()
        assert world.other(FRONT).state is ProcessState.RUNNING
        assert [child.name for child in world.launched] == [FRONT]

    def test_a_killed_front_is_restarted_and_shards_keep_running(self, node) -> None:
        shards = [node.child(shard).pid for shard in (0, 1)]
        node.pass_time(120)
        node.end(-9, FRONT)
        assert node.other(FRONT).starts_in_s == node.processes.next_start_s == pytest.approx(0.1)
        assert node.other(FRONT).reason == "was ended by SIGKILL"
        node.pass_time(1)
        assert (node.other(FRONT).state, node.other(FRONT).restarts) == (ProcessState.RUNNING, 1)
        assert [node.child(shard).pid for shard in (0, 1)] == shards

    def test_a_front_that_hangs_is_replaced(self, node) -> None:
        hung = node.child(FRONT)
        hung.iterating, hung.ignores_sigterm = False, True
        node.pass_time(62)
        assert hung.killed_at is not None
        assert node.child(FRONT) is not hung
        assert node.other(FRONT).state is ProcessState.RUNNING

    def test_a_failing_front_is_never_down_and_its_restarts_back_off(self, node) -> None:
        for _ in range(1200):
            if node.child(FRONT).code is None:
                node.end(1, FRONT, ExitReason("it is broken"))
            node.pass_time(1.0, step=1.0)
        assert node.other(FRONT).state is not ProcessState.DOWN
        assert 1200 / 15 - 5 < len(node.starts(FRONT)) < 1200 / 15 + 15
        node.end(1, FRONT, ExitReason("it is broken"))
        assert node.other(FRONT).reason == "ended with exit code 1: it is broken"

    def test_a_front_with_invalid_settings_is_restarted_at_once_after_a_reload(self, node) -> None:
        node.end(ExitCode.USAGE, FRONT)
        node.processes.restart_if_down()
        node.check()
        assert len(node.starts(FRONT)) == 2


class TestWorker:
    def test_no_worker_runs_while_no_shard_has_jobs(self, node) -> None:
        node.pass_time(60)
        assert node.starts(WORKER) == []
        assert node.other(WORKER).state is ProcessState.STOPPED
        assert node.other(WORKER).starts_in_s is None

    def test_one_worker_serves_all_shards(self, node) -> None:
        node.want_worker(0)
        node.want_worker(1)
        node.pass_time(60)
        assert len(node.starts(WORKER)) == 1

    def test_the_worker_continues_when_the_first_shard_with_jobs_is_killed(self, node) -> None:
        node.want_worker(0)
        node.want_worker(1)
        worker = node.child(WORKER)
        node.end(-9, 0)
        node.pass_time(30)
        assert node.child(WORKER) is worker
        assert (worker.code, worker.terminated_at) == (None, None)

    def test_the_worker_is_not_stopped_when_the_jobs_are_done_but_ends_itself(self, node) -> None:
        node.want_worker(0).jobs = 0
        node.pass_time(30)
        assert node.child(WORKER).terminated_at is None
        node.end(0, WORKER)
        assert node.other(WORKER).state is ProcessState.STOPPED
        assert (node.other(WORKER).restarts, node.other(WORKER).reason) == (0, "")
        node.pass_time(60)
        assert len(node.starts(WORKER)) == 1

    def test_a_worker_that_found_no_jobs_is_started_again_after_a_pause(self, node) -> None:
        node.want_worker(0)
        for _ in range(30):
            node.end(0, WORKER)
            node.pass_time(9)
            assert node.child(WORKER).code == 0
            node.pass_time(2)
            assert node.child(WORKER).code is None
        assert node.other(WORKER).restarts == 0, "ending without jobs is no failure"

    def test_while_another_worker_of_the_machine_runs_none_is_started(self, node) -> None:
        node.folder_is_locked = True
        node.want_worker(0)
        node.pass_time(60)
        assert node.starts(WORKER) == []
        node.folder_is_locked = False
        node.pass_time(11)
        assert len(node.starts(WORKER)) == 1

    def test_crashes_back_off_and_past_the_limit_the_worker_is_down_with_the_remedy(self, node) -> None:
        node.want_worker(0)
        for _ in range(4):
            node.end(1, WORKER, ExitReason("no Java was found"))
            node.pass_time(10)
        worker = node.other(WORKER)
        assert (worker.state, worker.restarts) == (ProcessState.DOWN, 3)
        for part in ("no Java was found", "node.restarts", "reload the node", "strandline recover work"):
            assert part in worker.reason
        node.pass_time(4000, step=5.0)
        assert len(node.starts(WORKER)) == 4
        assert node.status(0).state is ProcessState.RUNNING, "the shard keeps running, and reads its tail"

    def test_retryable_errors_never_leave_the_worker_down(self, node) -> None:
        node.want_worker(0)
        for _ in range(600):
            if node.child(WORKER).code is None:
                node.end(1, WORKER, ExitReason("Kafka is out of reach", retryable=True))
            node.pass_time(2.0, step=2.0)
        assert node.other(WORKER).state is ProcessState.WAITING

    @pytest.mark.parametrize(
        "restart_if_down", [lambda node: node.processes.restart_if_down(), lambda node: node.processes.restart(1)]
    )
    def test_a_reload_or_a_requested_restart_of_a_shard_restarts_a_worker_that_is_down(
        self, node, restart_if_down
    ) -> None:
        node.want_worker(0)
        for _ in range(4):
            node.end(1, WORKER)
            node.pass_time(10)
        assert node.other(WORKER).state is ProcessState.DOWN
        restart_if_down(node)
        node.check()
        assert node.child(WORKER).code is None
        node.end(1, WORKER)
        assert node.other(WORKER).starts_in_s == 1.0, "its history was reset"

    def test_once_no_shard_has_jobs_its_failures_are_forgotten(self, node) -> None:
        replaying = node.want_worker(0)
        for _ in range(4):
            node.end(1, WORKER)
            node.pass_time(10)
        replaying.phase, replaying.jobs = Phase.ACTIVE, 0
        node.pass_time(5)
        assert (node.other(WORKER).state, node.other(WORKER).reason) == (ProcessState.STOPPED, "")
        node.want_worker(1)
        assert node.child(WORKER).code is None

    def test_a_worker_that_makes_no_progress_is_killed_and_replaced(self, node) -> None:
        node.want_worker(0)
        worker = node.child(WORKER)
        worker.serves, worker.iterating, worker.ignores_sigterm = True, False, True
        node.pass_time(299)
        assert worker.killed_at is None, "Spark's session may start slowly"
        node.pass_time(5)
        assert worker.killed_at is not None
        assert node.child(WORKER) is not worker


class TestStopping:
    def test_shards_are_stopped_as_soon_as_the_front_has_ended(self, node) -> None:
        front = node.child(FRONT)
        front.ignores_sigterm = True
        node.processes.stop()
        node.pass_time(2)
        assert front.terminated_at is not None
        assert node.child(0).terminated_at is None, "its requests need the shards"
        front.code = 0
        node.pass_time(1)
        assert node.processes.has_stopped

    def test_a_front_that_does_not_end_is_killed_early_and_does_not_delay_the_shards(self, node) -> None:
        began = node.clock.monotonic()
        front = node.child(FRONT)
        front.ignores_sigterm = node.child(0).ignores_sigterm = True
        node.processes.stop()
        node.pass_time(40)
        assert front.killed_at == pytest.approx(began + 7, abs=0.5)
        assert node.child(1).terminated_at == pytest.approx(began + 7, abs=0.5)
        assert node.child(0).killed_at == pytest.approx(began + 30, abs=0.5), "the stop timeout includes the front's"
        assert node.processes.has_stopped

    def test_the_worker_is_stopped_at_once_and_no_other_is_started(self, node) -> None:
        node.want_worker(0)
        node.child(FRONT).ignores_sigterm = True
        node.processes.stop()
        node.pass_time(5)
        assert node.child(WORKER).code == 0
        node.pass_time(30)
        assert len(node.starts(WORKER)) == 1
        assert node.processes.has_stopped

    def test_a_shard_that_ends_while_the_front_finishes_is_not_started_again(self, node) -> None:
        node.child(FRONT).ignores_sigterm = True
        node.processes.stop()
        node.end(-9, 0)
        node.pass_time(30)
        assert len(node.starts(0)) == 1
        assert node.processes.has_stopped


def test_heartbeats_of_all_looping_processes_are_reported(node) -> None:
    node.want_worker(0)
    node.child(WORKER).serves = True
    node.pass_time(2)
    heartbeats = {heartbeat.name: heartbeat for heartbeat in node.processes.heartbeats()}
    assert [name for name, heartbeat in heartbeats.items() if heartbeat.must_iterate] == ["front", "shard 0", "shard 1"]
    assert heartbeats["worker"].pid is not None

"""What is different for the front and the replay worker, which have the same keeper as shards."""

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

    def test_one_that_is_killed_is_back_in_a_moment_and_shards_go_on(self, node) -> None:
        shards = [node.child(shard).pid for shard in (0, 1)]
        node.pass_time(120)
        node.end(-9, FRONT)
        assert node.other(FRONT).starts_in_s == node.processes.next_start_s == pytest.approx(0.1)
        assert node.other(FRONT).reason == "was ended by SIGKILL"
        node.pass_time(1)
        assert (node.other(FRONT).state, node.other(FRONT).restarts) == (ProcessState.RUNNING, 1)
        assert [node.child(shard).pid for shard in (0, 1)] == shards

    def test_one_that_hangs_is_replaced(self, node) -> None:
        hung = node.child(FRONT)
        hung.iterating, hung.deaf = False, True
        node.pass_time(62)
        assert hung.killed_at is not None
        assert node.child(FRONT) is not hung
        assert node.other(FRONT).state is ProcessState.RUNNING

    def test_it_is_never_left_down_and_tried_less_and_less_often(self, node) -> None:
        for _ in range(1200):
            if node.child(FRONT).code is None:
                node.end(1, FRONT, ExitReason("it is broken"))
            node.pass_time(1.0, step=1.0)
        assert node.other(FRONT).state is not ProcessState.DOWN
        assert 1200 / 15 - 5 < len(node.starts(FRONT)) < 1200 / 15 + 15
        node.end(1, FRONT, ExitReason("it is broken"))
        assert node.other(FRONT).reason == "ended with exit code 1: it is broken"

    def test_wrong_settings_are_tried_again_at_once_after_a_reload(self, node) -> None:
        node.end(ExitCode.USAGE, FRONT)
        node.processes.restart_if_down()
        node.check()
        assert len(node.starts(FRONT)) == 2


class TestWorker:
    def test_none_runs_while_no_shard_has_jobs(self, node) -> None:
        node.pass_time(60)
        assert node.starts(WORKER) == []
        assert node.other(WORKER).state is ProcessState.STOPPED
        assert node.other(WORKER).starts_in_s is None

    def test_one_serves_all_shards(self, node) -> None:
        node.want_worker(0)
        node.want_worker(1)
        node.pass_time(60)
        assert len(node.starts(WORKER)) == 1

    def test_it_goes_on_when_the_shard_that_asked_first_is_killed(self, node) -> None:
        node.want_worker(0)
        node.want_worker(1)
        worker = node.child(WORKER)
        node.end(-9, 0)
        node.pass_time(30)
        assert node.child(WORKER) is worker
        assert (worker.code, worker.terminated_at) == (None, None)

    def test_it_is_not_ended_when_the_jobs_are_done_but_ends_itself(self, node) -> None:
        node.want_worker(0).jobs = 0
        node.pass_time(30)
        assert node.child(WORKER).terminated_at is None
        node.end(0, WORKER)
        assert node.other(WORKER).state is ProcessState.STOPPED
        assert (node.other(WORKER).restarts, node.other(WORKER).reason) == (0, "")
        node.pass_time(60)
        assert len(node.starts(WORKER)) == 1

    def test_one_that_found_nothing_though_there_are_jobs_looks_again_after_a_while(self, node) -> None:
        node.want_worker(0)
        for _ in range(30):
            node.end(0, WORKER)
            node.pass_time(9)
            assert node.child(WORKER).code == 0
            node.pass_time(2)
            assert node.child(WORKER).code is None
        assert node.other(WORKER).restarts == 0, "that is no failure"

    def test_while_another_worker_of_the_machine_is_at_work_none_is_started(self, node) -> None:
        node.place_is_locked = True
        node.want_worker(0)
        node.pass_time(60)
        assert node.starts(WORKER) == []
        node.place_is_locked = False
        node.pass_time(11)
        assert len(node.starts(WORKER)) == 1

    def test_crashes_are_followed_by_pauses_and_past_the_limit_it_is_down_with_the_remedy(self, node) -> None:
        node.want_worker(0)
        for _ in range(4):
            node.end(1, WORKER, ExitReason("no Java was found"))
            node.pass_time(10)
        worker = node.other(WORKER)
        assert (worker.state, worker.restarts) == (ProcessState.DOWN, 3)
        for told in ("no Java was found", "node.restarts", "reload the node", "strandline recover work"):
            assert told in worker.reason
        node.pass_time(4000, step=5.0)
        assert len(node.starts(WORKER)) == 4
        assert node.status(0).state is ProcessState.RUNNING, "the shard waits, and reads its tail"

    def test_what_passes_by_itself_never_leaves_it_down(self, node) -> None:
        node.want_worker(0)
        for _ in range(600):
            if node.child(WORKER).code is None:
                node.end(1, WORKER, ExitReason("Kafka is out of reach", retryable=True))
            node.pass_time(2.0, step=2.0)
        assert node.other(WORKER).state is ProcessState.WAITING

    @pytest.mark.parametrize(
        "restart_if_down", [lambda node: node.processes.restart_if_down(), lambda node: node.processes.restart(1)]
    )
    def test_a_reload_or_a_restart_of_a_shard_by_a_person_revives_it(self, node, restart_if_down) -> None:
        node.want_worker(0)
        for _ in range(4):
            node.end(1, WORKER)
            node.pass_time(10)
        assert node.other(WORKER).state is ProcessState.DOWN
        restart_if_down(node)
        node.check()
        assert node.child(WORKER).code is None
        node.end(1, WORKER)
        assert node.other(WORKER).starts_in_s == 1.0, "the past counts no more"

    def test_once_nobody_needs_it_its_failures_are_forgotten(self, node) -> None:
        replaying = node.want_worker(0)
        for _ in range(4):
            node.end(1, WORKER)
            node.pass_time(10)
        replaying.phase, replaying.jobs = Phase.ACTIVE, 0
        node.pass_time(5)
        assert (node.other(WORKER).state, node.other(WORKER).reason) == (ProcessState.STOPPED, "")
        node.want_worker(1)
        assert node.child(WORKER).code is None

    def test_one_that_does_nothing_at_all_is_killed_and_replaced(self, node) -> None:
        node.want_worker(0)
        worker = node.child(WORKER)
        worker.serves, worker.iterating, worker.deaf = True, False, True
        node.pass_time(299)
        assert worker.killed_at is None, "Spark's session takes a while"
        node.pass_time(5)
        assert worker.killed_at is not None
        assert node.child(WORKER) is not worker


class TestStopping:
    def test_shards_are_asked_as_soon_as_the_front_has_finished(self, node) -> None:
        front = node.child(FRONT)
        front.deaf = True
        node.processes.stop()
        node.pass_time(2)
        assert front.terminated_at is not None
        assert node.child(0).terminated_at is None, "its requests need the shards"
        front.code = 0
        node.pass_time(1)
        assert node.processes.has_stopped

    def test_a_front_that_does_not_end_is_killed_early_and_the_shards_don_t_wait_for_it(self, node) -> None:
        began = node.clock.monotonic()
        front = node.child(FRONT)
        front.deaf = node.child(0).deaf = True
        node.processes.stop()
        node.pass_time(40)
        assert front.killed_at == pytest.approx(began + 7, abs=0.5)
        assert node.child(1).terminated_at == pytest.approx(began + 7, abs=0.5)
        assert node.child(0).killed_at == pytest.approx(began + 30, abs=0.5), "the time is for all of it"
        assert node.processes.has_stopped

    def test_a_worker_is_asked_at_once_and_no_other_is_started(self, node) -> None:
        node.want_worker(0)
        node.child(FRONT).deaf = True
        node.processes.stop()
        node.pass_time(5)
        assert node.child(WORKER).code == 0
        node.pass_time(30)
        assert len(node.starts(WORKER)) == 1
        assert node.processes.has_stopped

    def test_a_shard_that_ends_while_the_front_finishes_is_not_started_again(self, node) -> None:
        node.child(FRONT).deaf = True
        node.processes.stop()
        node.end(-9, 0)
        node.pass_time(30)
        assert len(node.starts(0)) == 1
        assert node.processes.has_stopped


def test_signs_of_life_of_all_that_turn_are_told(node) -> None:
    node.want_worker(0)
    node.child(WORKER).serves = True
    node.pass_time(2)
    heartbeats = {vital.name: vital for vital in node.processes.heartbeats()}
    assert [name for name, vital in heartbeats.items() if vital.must_iterate] == ["front", "shard 0", "shard 1"]
    assert heartbeats["worker"].pid is not None

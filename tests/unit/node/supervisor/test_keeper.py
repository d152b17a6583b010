"""The keeper of one shard's process: what it does when the process ends, hangs, or is to be stopped."""

from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.exit_reason import ExitReason
from strandline.node.shard.status import Phase
from strandline.node.status.processes import ProcessState
from strandline.node.supervisor import keeper

pytestmark = pytest.mark.unit


@pytest.fixture
def one(world):
    world.serve(0)
    world.check()
    return world


def test_a_shard_is_starting_until_its_first_report(one) -> None:
    assert one.status().state is ProcessState.STARTING
    assert one.status().report is None
    child = one.activate()
    status = one.status()
    assert (status.state, status.pid, status.is_active) == (ProcessState.RUNNING, child.pid, True)
    assert (status.restarts, status.exit_code, status.reason) == (0, None, "")


def test_a_crash_is_reported_with_signal_and_exit_reason_and_followed_by_a_restart_after_a_pause(one) -> None:
    one.activate()
    one.end(-11, words=ExitReason("terminate called"))
    status = one.status()
    assert (status.state, status.exit_code, status.starts_in_s) == (ProcessState.WAITING, -11, 1.0)
    assert (status.pid, status.report) == (None, None)
    assert status.reason == "was ended by SIGSEGV: terminate called"
    one.pass_time(1.0)
    assert len(one.starts()) == 2
    assert one.activate().pid == one.status().pid
    assert (one.status().restarts, one.status().reason) == (1, "")


def test_an_error_that_needs_an_operator_is_down_at_once_with_the_remedy(one) -> None:
    one.end(ExitCode.DATA_LOST, words=ExitReason("[3, 9) is lost", "Accept it with --accept-loss 9"))
    one.pass_time(4000)
    assert one.status().state is ProcessState.DOWN
    assert "[3, 9) is lost. Accept it with --accept-loss 9" in one.status().reason
    assert len(one.starts()) == 1


def test_over_the_limit_it_is_down_and_reports_the_limit(one) -> None:
    for _ in range(3):
        one.end(1)
        one.pass_time(10)
    one.end(1)
    one.pass_time(4000)
    assert len(one.starts()) == 4
    assert one.status().state is ProcessState.DOWN
    assert "node.restarts" in one.status().reason


def test_retryable_errors_are_retried_indefinitely_within_the_limit(one) -> None:
    for _ in range(3000):
        if one.status().state is ProcessState.STARTING:
            one.end(1, words=ExitReason("Kafka is out of reach", retryable=True))
        one.pass_time(2.0, step=2.0)
    starts = one.starts()
    assert one.status().state is not ProcessState.DOWN
    assert 6000 / 600 * 2 < len(starts) <= 6000 / 600 * 3 + 4


def test_after_a_full_disk_the_process_starts_once_there_is_room(one, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {Path("/data/shard-0")}
    monkeypatch.setattr(keeper, "is_nearly_full", lambda path: path in full)
    remedy = "Free space on it"
    words = ExitReason("the disk of /data/shard-0 is full", remedy, retryable=True, full_disk="/data/shard-0")
    one.end(1, words=words)
    one.pass_time(3600)
    assert len(one.starts()) == 1, "no process that would end in the same way"
    status = one.status()
    assert status.state is ProcessState.WAITING
    assert status.reason == "ended with exit code 1: the disk of /data/shard-0 is full. Free space on it"
    full.clear()
    one.pass_time(keeper.IDLE_PAUSE_S)
    assert one.status().state is ProcessState.STARTING


def test_a_disk_that_is_full_repeatedly_never_leaves_a_process_down(one, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "is_nearly_full", lambda _: False)
    for _ in range(600):
        if one.status().state is ProcessState.STARTING:
            one.end(1, words=ExitReason("the disk of /data is full", retryable=True, full_disk="/data"))
        one.pass_time(2.0, step=2.0)
    assert one.status().state is ProcessState.WAITING


def test_a_requested_restart_does_not_wait_for_room(one, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "is_nearly_full", lambda _: True)
    one.end(1, words=ExitReason("the disk of /data is full", retryable=True, full_disk="/data"))
    one.processes.restart(0)
    one.check()
    assert one.status().state is ProcessState.STARTING


def test_a_start_that_the_machine_refused_is_retried(one) -> None:
    one.no_launch = True
    one.end(1)
    one.pass_time(2)
    assert one.status().state is ProcessState.WAITING
    assert "Cannot allocate memory" in one.status().reason
    one.no_launch = False
    one.pass_time(30)
    assert one.status().state is ProcessState.STARTING


def test_a_requested_restart_ends_the_process_and_starts_another_at_once(one) -> None:
    child = one.activate()
    one.processes.restart(0)
    assert child.terminated_at == one.clock.monotonic()
    one.check()
    assert one.child() is not child
    assert one.status().restarts == 1


def test_a_requested_restart_of_a_shard_that_is_down_resets_its_history(one) -> None:
    for _ in range(4):
        one.end(1)
        one.pass_time(10)
    assert one.status().state is ProcessState.DOWN
    one.processes.restart(0)
    one.check()
    assert one.status().state is ProcessState.STARTING
    one.end(1)
    assert one.status().starts_in_s == 1.0


def test_a_requested_restart_does_not_wait_for_the_pause(one) -> None:
    one.end(ExitCode.FENCED)
    one.processes.restart(0)
    one.check()
    assert len(one.starts()) == 2


def test_reviving_starts_only_processes_that_are_down(one) -> None:
    one.serve(0, 1)
    one.check()
    child = one.activate(1)
    one.end(ExitCode.DATA_LOST)
    one.processes.restart_if_down()
    one.check()
    assert len(one.starts(0)) == 2
    assert one.child(1) is child
    assert child.terminated_at is None


class TestFencing:
    def test_after_a_fencing_it_waits_a_minute_before_it_starts_again(self, one) -> None:
        one.activate()
        one.end(ExitCode.FENCED)
        one.pass_time(59.5)
        assert one.status().state is ProcessState.WAITING
        one.pass_time(0.5)
        assert len(one.starts()) == 2

    def test_while_another_owner_is_live_it_retries_without_limit(self, one) -> None:
        for _ in range(50):
            one.end(ExitCode.FENCED)
            one.pass_time(61)
        assert len(one.starts()) == 51
        assert one.status().state is ProcessState.STARTING

    def test_a_fenced_shard_that_hangs_while_it_ends_counts_as_fenced(self, one) -> None:
        child = one.activate()
        child.phase, child.iterating = Phase.FENCED, False
        one.pass_time(61)
        assert child.killed_at is not None
        assert 0 < one.status().starts_in_s <= 60


class TestHanging:
    def test_a_shard_whose_loop_hangs_is_killed_and_started_again(self, one) -> None:
        child = one.activate()
        child.iterating = False
        one.pass_time(59)
        assert child.killed_at is None
        one.pass_time(2)
        assert child.killed_at is not None
        assert "no heartbeat for 60 s" in one.status().reason
        one.pass_time(3)
        assert one.status().restarts == 1

    def test_a_shard_that_does_not_answer_is_killed_and_started_again(self, one) -> None:
        child = one.activate()
        child.mute = True
        one.pass_time(61)
        assert child.killed_at is not None
        assert "0 is not running" in one.status().reason

    def test_a_shard_that_does_not_answer_for_a_short_time_keeps_running(self, one) -> None:
        child = one.activate()
        for _ in range(5):
            child.mute = True
            one.pass_time(50)
            child.mute = False
            one.pass_time(5)
        assert child.killed_at is None

    @pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.CATCHING_UP, Phase.REPLAYING])
    def test_a_hanging_storing_thread_ends_the_shard_though_its_loop_iterates(self, one, phase) -> None:
        child = one.activate()
        child.phase, child.busy = phase, True
        one.pass_time(600)
        assert child.killed_at is None
        child.stuck, stuck_since = "its storing thread made no progress", one.clock.monotonic()
        one.pass_time(59)
        assert child.killed_at is None
        one.pass_time(2)
        assert child.killed_at is not None
        assert child.killed_at - stuck_since >= 60
        assert "its storing thread made no progress for 60 s, see node.hang_after" in one.status().reason

    def test_a_storing_thread_that_continues_is_no_hang(self, one) -> None:
        child = one.activate()
        for _ in range(5):
            child.stuck = "its storing thread made no progress"
            one.pass_time(50)
            child.stuck = ""
            one.pass_time(5)
        assert child.killed_at is None

    def test_hangs_count_as_restarts(self, one) -> None:
        for _ in range(4):
            one.activate().iterating = False
            one.pass_time(75)
        one.pass_time(600)
        assert one.status().state is ProcessState.DOWN
        assert len(one.starts()) == 4

    def test_a_start_that_uses_cpu_is_not_killed_however_long_it_is_silent(self, one) -> None:
        one.child().busy = True
        one.pass_time(3000, step=1.0)
        assert one.child().killed_at is None

    def test_a_start_that_makes_no_progress_is_killed_later(self, one) -> None:
        one.pass_time(295)
        assert one.child().killed_at is None
        one.pass_time(5)
        assert one.child().killed_at is not None

    def test_after_a_suspend_of_the_machine_the_shards_timeouts_start_again(self, one) -> None:
        child = one.activate()
        one.clock.sleep(7200)
        one.pass_time(50)
        assert child.killed_at is None

    def test_a_slow_answer_of_one_shard_is_not_taken_for_a_suspend(self, one) -> None:
        one.serve(0, 1)
        one.check()
        stuck = one.activate(0)
        one.activate(1).iterating = True
        stuck.iterating = False
        answer = one.fetch_report

        def slowly(name, timeout: float):
            if name == 1:
                one.clock.sleep(6.0)
            return answer(name, timeout)

        one.fetch_report = slowly
        one.pass_time(80)
        assert stuck.killed_at is not None

    def test_a_report_of_the_previous_process_is_ignored(self, one) -> None:
        old = one.activate()
        report = old.report()
        one.end(-9)
        one.fetch_report = lambda _name, _timeout: report
        one.pass_time(2)
        assert one.status().state is ProcessState.STARTING


class TestLeaving:
    def test_all_processes_are_stopped_at_the_same_time(self, one) -> None:
        one.serve(0, 1, 2)
        one.check()
        for shard in range(3):
            one.activate(shard)
        one.pass_time(5)
        one.processes.stop()
        one.check()
        assert {one.child(shard).terminated_at for shard in range(3)} == {one.clock.monotonic()}
        one.check()
        assert one.processes.has_stopped
        assert [status.state for status in one.processes.shards()] == [ProcessState.STOPPED] * 3

    def test_a_process_that_does_not_end_is_killed_after_its_timeout(self, one) -> None:
        child = one.activate()
        child.deaf = True
        one.processes.stop()
        one.pass_time(29.5)
        assert child.terminated_at is not None
        assert child.killed_at is None
        assert not one.processes.has_stopped
        one.pass_time(1)
        assert child.killed_at is not None
        assert one.processes.has_stopped

    def test_a_kill_ends_all_processes_at_once(self, one) -> None:
        child = one.activate()
        child.deaf = True
        one.processes.stop()
        one.processes.kill()
        one.check()
        assert one.processes.has_stopped

    def test_no_process_is_started_during_a_stop(self, one) -> None:
        one.end(1)
        one.processes.stop()
        one.processes.restart(0)
        one.pass_time(100)
        assert len(one.starts()) == 1
        assert one.processes.has_stopped

    def test_a_shard_that_is_no_longer_served_is_stopped_and_others_keep_running(self, one) -> None:
        one.serve(0, 1)
        one.check()
        gone, stays = one.activate(0), one.activate(1)
        one.serve(1)
        one.check()
        assert gone.terminated_at is not None
        assert stays.terminated_at is None
        assert [status.shard for status in one.processes.shards()] == [1]

    def test_a_shard_that_is_no_longer_served_and_does_not_end_is_killed_and_waited_for(self, one) -> None:
        child = one.activate()
        child.deaf = True
        one.serve()
        one.pass_time(29)
        assert child.killed_at is None
        one.pass_time(2)
        assert child.killed_at is not None
        one.processes.stop()
        one.pass_time(1)
        assert one.processes.has_stopped

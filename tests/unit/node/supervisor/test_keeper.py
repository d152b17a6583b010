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
def single(world):
    world.serve(0)
    world.check()
    return world


def test_a_shard_is_starting_until_its_first_report(single) -> None:
    assert single.status().state is ProcessState.STARTING
    assert single.status().report is None
    child = single.activate()
    status = single.status()
    assert (status.state, status.pid, status.is_active) == (ProcessState.RUNNING, child.pid, True)
    assert (status.restarts, status.exit_code, status.reason) == (0, None, "")


def test_a_crash_is_reported_with_signal_and_exit_reason_and_followed_by_a_restart_after_a_pause(single) -> None:
    single.activate()
    single.end(-11, reason=ExitReason("terminate called"))
    status = single.status()
    assert (status.state, status.exit_code, status.starts_in_s) == (ProcessState.WAITING, -11, 1.0)
    assert (status.pid, status.report) == (None, None)
    assert status.reason == "was ended by SIGSEGV: terminate called"
    single.pass_time(1.0)
    assert len(single.starts()) == 2
    assert single.activate().pid == single.status().pid
    assert (single.status().restarts, single.status().reason) == (1, "")


def test_an_error_that_needs_an_operator_is_down_at_once_with_the_remedy(single) -> None:
    single.end(ExitCode.DATA_LOST, reason=ExitReason("[3, 9) is lost", "Accept it with --accept-loss 9"))
    single.pass_time(4000)
    assert single.status().state is ProcessState.DOWN
    assert "[3, 9) is lost. Accept it with --accept-loss 9" in single.status().reason
    assert len(single.starts()) == 1


def test_over_the_limit_it_is_down_and_reports_the_limit(single) -> None:
    for _ in range(3):
        single.end(1)
        single.pass_time(10)
    single.end(1)
    single.pass_time(4000)
    assert len(single.starts()) == 4
    assert single.status().state is ProcessState.DOWN
    assert "node.restarts" in single.status().reason


def test_retryable_errors_are_retried_indefinitely_within_the_limit(single) -> None:
    for _ in range(3000):
        if single.status().state is ProcessState.STARTING:
            single.end(1, reason=ExitReason("Kafka is out of reach", retryable=True))
        single.pass_time(2.0, step=2.0)
    starts = single.starts()
    assert single.status().state is not ProcessState.DOWN
    assert 6000 / 600 * 2 < len(starts) <= 6000 / 600 * 3 + 4


def test_after_a_full_disk_the_process_starts_once_there_is_room(single, monkeypatch: pytest.MonkeyPatch) -> None:
    full = {Path("/data/shard-0")}
    monkeypatch.setattr(keeper, "is_nearly_full", lambda path: path in full)
    remedy = "Free space on it"
    reason = ExitReason("the disk of /data/shard-0 is full", remedy, retryable=True, full_disk="/data/shard-0")
    single.end(1, reason=reason)
    single.pass_time(3600)
    assert len(single.starts()) == 1, "another process would end in the same way"
    status = single.status()
    assert status.state is ProcessState.WAITING
    assert status.reason == "ended with exit code 1: the disk of /data/shard-0 is full. Free space on it"
    full.clear()
    single.pass_time(keeper.IDLE_PAUSE_S)
    assert single.status().state is ProcessState.STARTING


def test_a_disk_that_is_full_repeatedly_never_leaves_a_process_down(single, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "is_nearly_full", lambda _: False)
    for _ in range(600):
        if single.status().state is ProcessState.STARTING:
            single.end(1, reason=ExitReason("the disk of /data is full", retryable=True, full_disk="/data"))
        single.pass_time(2.0, step=2.0)
    assert single.status().state is ProcessState.WAITING


def test_a_requested_restart_does_not_wait_for_room(single, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "is_nearly_full", lambda _: True)
    single.end(1, reason=ExitReason("the disk of /data is full", retryable=True, full_disk="/data"))
    single.processes.restart(0)
    single.check()
    assert single.status().state is ProcessState.STARTING


def test_a_start_that_the_machine_refused_is_retried(single) -> None:
    single.launch_fails = True
    single.end(1)
    single.pass_time(2)
    assert single.status().state is ProcessState.WAITING
    assert "Cannot allocate memory" in single.status().reason
    single.launch_fails = False
    single.pass_time(30)
    assert single.status().state is ProcessState.STARTING


def test_a_requested_restart_ends_the_process_and_starts_another_at_once(single) -> None:
    child = single.activate()
    single.processes.restart(0)
    assert child.terminated_at == single.clock.monotonic()
    single.check()
    assert single.child() is not child
    assert single.status().restarts == 1


def test_a_requested_restart_of_a_shard_that_is_down_resets_its_history(single) -> None:
    for _ in range(4):
        single.end(1)
        single.pass_time(10)
    assert single.status().state is ProcessState.DOWN
    single.processes.restart(0)
    single.check()
    assert single.status().state is ProcessState.STARTING
    single.end(1)
    assert single.status().starts_in_s == 1.0


def test_a_requested_restart_does_not_wait_for_the_pause(single) -> None:
    single.end(ExitCode.FENCED)
    single.processes.restart(0)
    single.check()
    assert len(single.starts()) == 2


def test_reviving_starts_only_processes_that_are_down(single) -> None:
    single.serve(0, 1)
    single.check()
    child = single.activate(1)
    single.end(ExitCode.DATA_LOST)
    single.processes.restart_if_down()
    single.check()
    assert len(single.starts(0)) == 2
    assert single.child(1) is child
    assert child.terminated_at is None


class TestFencing:
    def test_after_a_fencing_it_waits_a_minute_before_it_starts_again(self, single) -> None:
        single.activate()
        single.end(ExitCode.FENCED)
        single.pass_time(59.5)
        assert single.status().state is ProcessState.WAITING
        single.pass_time(0.5)
        assert len(single.starts()) == 2

    def test_while_another_owner_is_live_it_retries_without_limit(self, single) -> None:
        for _ in range(50):
            single.end(ExitCode.FENCED)
            single.pass_time(61)
        assert len(single.starts()) == 51
        assert single.status().state is ProcessState.STARTING

    def test_a_fenced_shard_that_hangs_while_it_ends_counts_as_fenced(self, single) -> None:
        child = single.activate()
        child.phase, child.iterating = Phase.FENCED, False
        single.pass_time(61)
        assert child.killed_at is not None
        assert 0 < single.status().starts_in_s <= 60


class TestHanging:
    def test_a_shard_whose_loop_hangs_is_killed_and_started_again(self, single) -> None:
        child = single.activate()
        child.iterating = False
        single.pass_time(59)
        assert child.killed_at is None
        single.pass_time(2)
        assert child.killed_at is not None
        assert "no heartbeat for 60 s" in single.status().reason
        single.pass_time(3)
        assert single.status().restarts == 1

    def test_a_shard_that_does_not_answer_is_killed_and_started_again(self, single) -> None:
        child = single.activate()
        child.is_unresponsive = True
        single.pass_time(61)
        assert child.killed_at is not None
        assert "0 is not running" in single.status().reason

    def test_a_shard_that_does_not_answer_for_a_short_time_keeps_running(self, single) -> None:
        child = single.activate()
        for _ in range(5):
            child.is_unresponsive = True
            single.pass_time(50)
            child.is_unresponsive = False
            single.pass_time(5)
        assert child.killed_at is None

    @pytest.mark.parametrize("phase", [Phase.ACTIVE, Phase.CATCHING_UP, Phase.REPLAYING])
    def test_a_hanging_storing_thread_ends_the_shard_though_its_loop_iterates(self, single, phase) -> None:
        child = single.activate()
        child.phase, child.busy = phase, True
        single.pass_time(600)
        assert child.killed_at is None
        child.stuck, stuck_since = "its storing thread made no progress", single.clock.monotonic()
        single.pass_time(59)
        assert child.killed_at is None
        single.pass_time(2)
        assert child.killed_at is not None
        assert child.killed_at - stuck_since >= 60
        assert "its storing thread made no progress for 60 s, see node.hang_after" in single.status().reason

    def test_a_storing_thread_that_continues_is_no_hang(self, single) -> None:
        child = single.activate()
        for _ in range(5):
            child.stuck = "its storing thread made no progress"
            single.pass_time(50)
            child.stuck = ""
            single.pass_time(5)
        assert child.killed_at is None

    def test_hangs_count_as_restarts(self, single) -> None:
        for _ in range(4):
            single.activate().iterating = False
            single.pass_time(75)
        single.pass_time(600)
        assert single.status().state is ProcessState.DOWN
        assert len(single.starts()) == 4

    def test_a_start_that_uses_cpu_is_not_killed_however_long_it_is_silent(self, single) -> None:
        single.child().busy = True
        single.pass_time(3000, step=1.0)
        assert single.child().killed_at is None

    def test_a_start_that_makes_no_progress_is_killed_later(self, single) -> None:
        single.pass_time(295)
        assert single.child().killed_at is None
        single.pass_time(5)
        assert single.child().killed_at is not None

    def test_after_a_suspend_of_the_machine_the_shards_timeouts_start_again(self, single) -> None:
        child = single.activate()
        single.clock.sleep(7200)
        single.pass_time(50)
        assert child.killed_at is None

    def test_a_slow_answer_of_one_shard_is_not_taken_for_a_suspend(self, single) -> None:
        single.serve(0, 1)
        single.check()
        hanging = single.activate(0)
        single.activate(1).iterating = True
        hanging.iterating = False
        answer = single.fetch_report

        def fetch_slowly(name, timeout: float):
            if name == 1:
                single.clock.sleep(6.0)
            return answer(name, timeout)

        single.fetch_report = fetch_slowly
        single.pass_time(80)
        assert hanging.killed_at is not None

    def test_a_report_of_the_previous_process_is_ignored(self, single) -> None:
        old = single.activate()
        report = old.report()
        single.end(-9)
        single.fetch_report = lambda _name, _timeout: report
        single.pass_time(2)
        assert single.status().state is ProcessState.STARTING


class TestStopping:
    def test_all_processes_are_stopped_at_the_same_time(self, single) -> None:
        single.serve(0, 1, 2)
        single.check()
        for shard in range(3):
            single.activate(shard)
        single.pass_time(5)
        single.processes.stop()
        single.check()
        assert {single.child(shard).terminated_at for shard in range(3)} == {single.clock.monotonic()}
        single.check()
        assert single.processes.has_stopped
        assert [status.state for status in single.processes.shards()] == [ProcessState.STOPPED] * 3

    def test_a_process_that_does_not_end_is_killed_after_its_timeout(self, single) -> None:
        child = single.activate()
        child.ignores_sigterm = True
        single.processes.stop()
        single.pass_time(29.5)
        assert child.terminated_at is not None
        assert child.killed_at is None
        assert not single.processes.has_stopped
        single.pass_time(1)
        assert child.killed_at is not None
        assert single.processes.has_stopped

    def test_a_kill_ends_all_processes_at_once(self, single) -> None:
        child = single.activate()
        child.ignores_sigterm = True
        single.processes.stop()
        single.processes.kill()
        single.check()
        assert single.processes.has_stopped

    def test_no_process_is_started_during_a_stop(self, single) -> None:
        single.end(1)
        single.processes.stop()
        single.processes.restart(0)
        single.pass_time(100)
        assert len(single.starts()) == 1
        assert single.processes.has_stopped

    def test_a_shard_that_is_no_longer_served_is_stopped_and_others_keep_running(self, single) -> None:
        single.serve(0, 1)
        single.check()
        removed, kept = single.activate(0), single.activate(1)
        single.serve(1)
        single.check()
        assert removed.terminated_at is not None
        assert kept.terminated_at is None
        assert [status.shard for status in single.processes.shards()] == [1]

    def test_a_shard_that_is_no_longer_served_and_does_not_end_is_killed_and_waited_for(self, single) -> None:
        child = single.activate()
        child.ignores_sigterm = True
        single.serve()
        single.pass_time(29)
        assert child.killed_at is None
        single.pass_time(2)
        assert child.killed_at is not None
        single.processes.stop()
        single.pass_time(1)
        assert single.processes.has_stopped

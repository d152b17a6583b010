"""The process of a worker, and whether it is certainly dead."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.recovery.worker_identity import Processes, WorkerName

pytestmark = pytest.mark.unit

NAME = WorkerName("host", "boot-1", "4026531836", 123, 5_000)


class FakeProc:
    """A tree like /proc, and the processes in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.pids = root, {123}
        (root / "sys/kernel/random").mkdir(parents=True)
        (root / "sys/kernel/random/boot_id").write_text("boot-1\n")
        (root / "self/ns").mkdir(parents=True)
        (root / "self/ns/pid").symlink_to("pid:[4026531836]")
        self.stat(123, 5_000)
        self.processes = Processes(host="host", proc=root, exists=lambda pid: pid in self.pids)

    def stat(self, pid: int, started: int, *, state: str = "S", name: str = "python") -> None:
        (self.root / str(pid)).mkdir(exist_ok=True)
        fields = [state, *map(str, range(4, 22)), str(started), *map(str, range(23, 53))]
        (self.root / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}\n")


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    return FakeProc(tmp_path)


def test_a_name_can_be_formatted_and_parsed_again() -> None:
    assert WorkerName.parse(str(NAME)) == NAME
    assert str(NAME) == "host/boot-1/4026531836/123/5000"


@pytest.mark.parametrize("name", ["", "w", "host/boot/1/2", "host/boot/ns/x/1", "host/boot/ns/1/x", "a/b/c/1/2/3"])
def test_a_name_of_another_form_is_never_gone(proc: FakeProc, name: str) -> None:
    assert WorkerName.parse(name) is None
    assert not proc.processes.is_gone(name)


def test_a_process_that_runs_is_not_gone(proc: FakeProc) -> None:
    assert not proc.processes.is_gone(str(NAME))


def test_a_process_that_does_not_exist_is_gone(proc: FakeProc) -> None:
    proc.pids.clear()
    assert proc.processes.is_gone(str(NAME))


def test_a_process_whose_pid_was_reused_is_gone(proc: FakeProc) -> None:
    proc.stat(123, 5_001)
    assert proc.processes.is_gone(str(NAME))


@pytest.mark.parametrize("state", ["Z", "X"])
def test_a_zombie_process_is_gone(proc: FakeProc, state: str) -> None:
    proc.stat(123, 5_000, state=state)
    assert proc.processes.is_gone(str(NAME))


@pytest.mark.parametrize(
    "elsewhere",
    [replace(NAME, host="other"), replace(NAME, boot="boot-2"), replace(NAME, namespace="1")],
)
def test_the_state_of_a_process_on_another_machine_is_unknown(proc: FakeProc, elsewhere: WorkerName) -> None:
    proc.pids.clear()
    assert not proc.processes.is_gone(str(elsewhere))


@pytest.mark.parametrize("missing", ["123/stat", "sys/kernel/random/boot_id", "self/ns/pid"])
def test_an_unreadable_process_is_neither_gone_nor_alive(proc: FakeProc, missing: str) -> None:
    """For example a process of another user, if /proc hides those."""
    (proc.root / missing).unlink()
    assert not proc.processes.is_gone(str(NAME))


def test_the_name_of_a_program_may_contain_anything(proc: FakeProc) -> None:
    proc.stat(123, 5_000, name="a) Z 1 (b")
    assert not proc.processes.is_gone(str(NAME))


def test_this_process_has_a_name_and_is_alive() -> None:
    here = Processes()
    name = WorkerName.parse(here.this_worker())
    assert name is not None
    assert name.pid == os.getpid()
    assert here.this_worker() == here.this_worker()
    assert not here.is_gone(here.this_worker())


def test_a_real_process_is_gone_after_its_end_and_not_before() -> None:
    program = (
        "from strandline.recovery.worker_identity import Processes\n"
        "print(Processes().this_worker(), flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not Processes().is_gone(name)
        process.communicate("\n")
    assert Processes().is_gone(name)

"""A worker's process: started when needed, restarted if it ends too early, and never left running."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from io import StringIO
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock, SystemClock, wait_until
from strandline.disk import DiskFull
from strandline.errors import StrandlineError
from strandline.node.masking import SecretMask
from strandline.node.output import JsonOutput
from strandline.node.replay import service as service_module
from strandline.node.replay.service import NodeWorker, WorkerFails, WorkerProcess
from strandline.node.shard.folder_lock import locked
from strandline.store.protocol import StoreRefused, StoreUnavailable

pytestmark = pytest.mark.unit

LASTING = "import sys; sys.stdin.read(); import time; time.sleep(300)"


def python(code: str) -> Sequence[str]:
    return [sys.executable, "-I", "-S", "-c", code]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(0)


@pytest.fixture
def lasting(clock: ManualClock, tmp_path: Path) -> Iterator[WorkerProcess]:
    with closing(WorkerProcess(None, tmp_path, clock, command=python(LASTING))) as service:
        yield service


def ended(service: WorkerProcess) -> None:
    assert wait_until(lambda: service.pid is None, timeout=30, clock=SystemClock(), poll=0.02)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_no_worker_runs_before_the_first_call(lasting: WorkerProcess) -> None:
    assert lasting.pid is None


def test_repeated_requests_start_one_worker(lasting: WorkerProcess) -> None:
    lasting.ensure_worker()
    first = lasting.pid
    assert first is not None
    for _ in range(3):
        lasting.ensure_worker()
    assert lasting.pid == first


def test_a_worker_ends_with_its_service(lasting: WorkerProcess) -> None:
    lasting.ensure_worker()
    pid = lasting.pid
    assert pid is not None
    lasting.close()
    assert not is_there(pid)
    lasting.close()


def test_an_idle_worker_is_started_again_after_a_pause(clock: ManualClock, tmp_path: Path) -> None:
    with closing(WorkerProcess(None, tmp_path, clock, command=python(""))) as service:
        for _ in range(30):
            service.ensure_worker()
            ended(service)
            service.ensure_worker()
            assert service.pid is None, "there is a pause first"
            clock.sleep(10)


def test_while_another_worker_runs_none_is_started(clock: ManualClock, tmp_path: Path) -> None:
    with closing(WorkerProcess(None, tmp_path, clock, command=python(""))) as service:
        service.ensure_worker()
        ended(service)
        service.ensure_worker()
        with locked(tmp_path):
            for _ in range(5):
                clock.sleep(10)
                service.ensure_worker()
                assert not was_started(service)
        clock.sleep(10)
        service.ensure_worker()
        assert was_started(service)


def test_a_failing_worker_is_restarted_with_growing_pauses_and_then_no_longer(
    clock: ManualClock, tmp_path: Path
) -> None:
    service = WorkerProcess(None, tmp_path, clock, command=python("raise SystemExit(3)"))
    pauses = []

    def run_until_it_stops() -> None:
        while True:
            service.ensure_worker()
            ended(service)
            service.ensure_worker()
            began = clock.monotonic()
            while service.pid is None and not was_started(service):
                clock.sleep(1)
                service.ensure_worker()
            pauses.append(clock.monotonic() - began)

    with pytest.raises(WorkerFails, match="exit code 3"):
        run_until_it_stops()
    assert pauses[:6] == [2, 4, 8, 16, 32, 60]


def failing(tmp_path: Path, error: StrandlineError) -> Sequence[str]:
    """A worker that ends with an error, printed like one of `strandline recover work`."""
    printed = StringIO()
    JsonOutput(printed, StringIO(), SystemClock(), SecretMask()).error(error)
    (tmp_path / "words").write_text(printed.getvalue())
    return python(f"print(open({str(tmp_path / 'words')!r}).read()); raise SystemExit(1)")


def run_next_worker(service: WorkerProcess, clock: ManualClock) -> None:
    """Start the next worker, and wait for its end."""
    service.ensure_worker()
    assert was_started(service)
    ended(service)
    service.ensure_worker()
    assert not was_started(service)
    clock.sleep(60)


def test_a_worker_that_failed_on_a_full_disk_is_restarted_once_there_is_room(
    clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = {tmp_path / "scratch"}
    monkeypatch.setattr(service_module, "is_nearly_full", lambda path: path in full)
    command = failing(tmp_path, DiskFull(tmp_path / "scratch"))
    with closing(WorkerProcess(None, tmp_path, clock, command=command)) as service, capture_logs() as lines:
        run_next_worker(service, clock)
        for _ in range(100):
            clock.sleep(60)
            service.ensure_worker()
            assert not was_started(service), "there is no room yet"
        full.clear()
        run_next_worker(service, clock)
    failures = [line for line in lines if "has failed" in line["event"]]
    assert str(tmp_path / "scratch") in failures[0]["said"]
    assert failures[0]["remedy"].startswith("Free space")


@pytest.mark.parametrize("error", [DiskFull(None), StoreUnavailable("the store does not answer")])
def test_a_worker_with_retryable_errors_is_restarted_without_limit(
    clock: ManualClock, tmp_path: Path, error: StrandlineError
) -> None:
    with closing(WorkerProcess(None, tmp_path, clock, command=failing(tmp_path, error))) as service:
        for _ in range(15):
            run_next_worker(service, clock)


def test_the_reason_of_a_stopped_worker_is_its_last_error(clock: ManualClock, tmp_path: Path) -> None:
    command = failing(tmp_path, StoreRefused("the tables are not ours"))
    with closing(WorkerProcess(None, tmp_path, clock, command=command)) as service:
        for _ in range(10):
            run_next_worker(service, clock)
        with pytest.raises(WorkerFails, match="the tables are not ours"):
            run_next_worker(service, clock)


def test_a_shard_in_a_node_leaves_the_worker_to_the_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module.subprocess, "Popen", None)
    with closing(NodeWorker()) as service:
        service.ensure_worker()
        service.ensure_worker()


def was_started(service: WorkerProcess) -> bool:
    """Whether a process was started that may have ended by now."""
    return service._process is not None

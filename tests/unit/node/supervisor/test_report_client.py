"""Fetching a child's report over a real socket, from children that answer, hang, send garbage and are replaced."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.query import link_server
from strandline.node.query.link_server import LinkServer
from strandline.node.shard.folder_lock import locked
from strandline.node.supervisor.child_report import parse_process_report
from strandline.node.supervisor.liveness import Stage
from strandline.node.supervisor.process_reports import ProcessReports
from strandline.node.supervisor.report_client import REPORT, NoReport, ReportClient
from strandline.node.supervisor.role import ReportUnreadable, front_role, worker_role

pytestmark = pytest.mark.unit

CLOCK = SystemClock()


@pytest.fixture
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("r") / "front.sock"


@pytest.fixture
def client(path: Path) -> Iterator[ReportClient]:
    with closing(ReportClient(path, CLOCK)) as created:
        yield created


def test_both_ends_use_the_same_message_kind() -> None:
    assert REPORT == link_server.REPORT


def test_a_report_counts_loop_iterations(path: Path, client: ReportClient) -> None:
    reports = ProcessReports(Stage.STEADY)
    with LinkServer(path, reports, CLOCK):
        first = parse_process_report(client.fetch(5.0))
        reports.iterated()
        second = parse_process_report(client.fetch(5.0))
    assert (first.progress, second.progress) == (("steady", 0), ("steady", 1))


def test_without_a_process_there_is_no_report(client: ReportClient) -> None:
    with pytest.raises(NoReport, match="No such file"):
        client.fetch(5.0)


def test_reports_of_the_next_process_use_a_new_connection_without_a_failure(path: Path, client: ReportClient) -> None:
    for iterations in range(3):
        reports = ProcessReports(Stage.STEADY)
        for _ in range(iterations):
            reports.iterated()
        with LinkServer(path, reports, CLOCK):
            assert parse_process_report(client.fetch(5.0)).progress == ("steady", iterations)


def test_a_process_that_does_not_answer_is_waited_for_until_the_timeout(path: Path, client: ReportClient) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        with pytest.raises(NoReport, match="did not answer in time"):
            client.fetch(0.05)


@pytest.mark.parametrize("lie", [b"x" * 64, b"SLQ1" + b"\xff" * 60, b""])
def test_an_invalid_frame_is_no_report(path: Path, client: ReportClient, lie: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)

        def answer_invalid() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(lie)

        thread = threading.Thread(target=answer_invalid)
        thread.start()
        with pytest.raises(NoReport):
            client.fetch(5.0)
        thread.join()


def test_a_report_of_another_version_is_an_error_that_names_it(path: Path) -> None:
    class Other(ProcessReports):
        def report(self) -> bytes:
            return b'{"stage": "dozing"}'

    role = front_role(None, path.parent, CLOCK)  # type: ignore[arg-type]
    with LinkServer(path, Other(Stage.STEADY), CLOCK), pytest.raises(ReportUnreadable, match="Restart the node"):
        role.fetch_report(5.0)
    role.close()


def test_a_worker_is_started_unless_another_one_holds_its_folder(path: Path, tmp_path: Path) -> None:
    role = worker_role(None, path.parent, tmp_path / "replay", CLOCK)  # type: ignore[arg-type]
    assert role.may_start()
    with locked(tmp_path / "replay"):
        assert not role.may_start()
    (tmp_path / "file").write_text("in the way")
    role = worker_role(None, path.parent, tmp_path / "file" / "replay", CLOCK)  # type: ignore[arg-type]
    assert role.may_start(), "the worker itself reports an error of its folder"


def test_a_process_that_only_reports_answers_no_requests(path: Path, client: ReportClient) -> None:
    reports = ProcessReports(Stage.STARTING)
    with LinkServer(path, reports, CLOCK), pytest.raises(Exception, match="not a shard"):
        reports.answer(None, None)  # type: ignore[arg-type]
    with pytest.raises(NoReport):
        client.fetch(1.0)

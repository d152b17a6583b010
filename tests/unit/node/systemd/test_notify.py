"""Messages to systemd, over a real socket."""

import os
import socket
from collections.abc import Iterator
from uuid import uuid4

import pytest

from strandline.node.systemd.notify import NotifySocket, watchdog_seconds

pytestmark = pytest.mark.unit


@pytest.fixture(params=["path", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, socket.socket]]:
    """systemd's end: the value of $NOTIFY_SOCKET, and the socket."""
    name = f"strandline-test-{uuid4().hex}"
    address = str(tmp_path_factory.mktemp("n") / "notify") if request.param == "path" else f"@{name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address if request.param == "path" else f"\0{name}")
        listening.settimeout(10)
        yield address, listening


def test_assignments_are_sent_in_one_message(manager: tuple[str, socket.socket]) -> None:
    address, listening = manager
    notify = NotifySocket.of({"NOTIFY_SOCKET": address})
    assert notify.is_open
    assert notify.send("READY=1", "STATUS=two\nlines, ü")
    assert listening.recv(4096).decode() == "READY=1\nSTATUS=two lines, ü"
    notify.close()
    notify.close()
    assert not notify.send("READY=1")


def test_a_long_status_is_truncated(manager: tuple[str, socket.socket]) -> None:
    address, listening = manager
    notify = NotifySocket(address)
    assert notify.send("WATCHDOG=1", "STATUS=" + "x" * 10_000)
    message = listening.recv(1 << 16)
    assert message.startswith(b"WATCHDOG=1\nSTATUS=xxx")
    assert len(message) == 4096
    notify.close()


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
def test_without_systemd_no_message_is_sent(environ: dict[str, str]) -> None:
    notify = NotifySocket.of(environ)
    assert not notify.is_open
    assert not notify.send("READY=1")
    notify.close()


def test_a_manager_that_has_ended_or_does_not_read_ends_no_service(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("n") / "notify"
    notify = NotifySocket(str(path))
    assert not notify.send("WATCHDOG=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(path))
        accepted = 0
        while notify.send("WATCHDOG=1"):
            accepted += 1
            assert accepted < 100_000
    assert accepted > 0
    notify.close()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "180000000"}, 180.0),
        ({"WATCHDOG_USEC": "180000000", "WATCHDOG_PID": str(os.getpid())}, 180.0),
        ({"WATCHDOG_USEC": "180000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "often"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_timeout_is_ignored_if_it_is_for_another_process(
    environ: dict[str, str], seconds: float | None
) -> None:
    assert watchdog_seconds(environ, os.getpid()) == seconds

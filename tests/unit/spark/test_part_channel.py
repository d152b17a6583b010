"""The messages between executors and the driver: only a process with the key can create frames."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import PartStopped
from strandline.spark.part_channel import (
    ChannelBroken,
    DriverReply,
    SignedFrames,
    TaskRequest,
    end_request,
    parse_end,
    parse_request,
)

pytestmark = pytest.mark.unit

KEY, NONCE = b"k" * 32, b"n" * 16
Sockets = tuple[socket.socket, socket.socket]


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    driver, executor = socket.socketpair()
    with closing(driver), closing(executor):
        yield driver, executor


@pytest.mark.parametrize(
    "message",
    [
        TaskRequest(),
        TaskRequest(part=("metrics", "job", 3, 7)),
        TaskRequest(counts=AttemptCounts(Counts(1, 2), Counts(3)).to_json(), samples=500),
        end_request(PartOutcome(Counts(1, 2, 3), chunks=4)),
        end_request(PartStopped("paused")),
    ],
)
def test_requests_and_replies_arrive_unchanged(sockets: Sockets, message: TaskRequest) -> None:
    driver = SignedFrames(sockets[0], KEY, NONCE, is_driver=True)
    executor = SignedFrames(sockets[1], KEY, NONCE, is_driver=False)
    for _ in range(2):
        executor.send(message)
        assert parse_request(driver.receive()) == message
        driver.send(DriverReply(2.5, 0.5, "why"))
        assert DriverReply(**executor.receive()) == DriverReply(2.5, 0.5, "why")


@pytest.mark.parametrize(
    ("key", "nonce", "is_driver"), [(b"x" * 32, NONCE, False), (KEY, b"m" * 16, False), (KEY, NONCE, True)]
)
def test_a_frame_of_another_key_connection_or_direction_is_refused(
    sockets: Sockets, key: bytes, nonce: bytes, *, is_driver: bool
) -> None:
    SignedFrames(sockets[1], key, nonce, is_driver=is_driver).send(TaskRequest())
    with pytest.raises(ChannelBroken, match="does not know the key"):
        SignedFrames(sockets[0], KEY, NONCE, is_driver=True).receive()


def test_a_frame_that_is_sent_again_is_refused(sockets: Sockets) -> None:
    driver = SignedFrames(sockets[0], KEY, NONCE, is_driver=True)
    for _ in range(2):
        SignedFrames(sockets[1], KEY, NONCE, is_driver=False).send(TaskRequest())
    driver.receive()
    with pytest.raises(ChannelBroken, match="does not know the key"):
        driver.receive()


def test_an_impossible_length_and_half_a_message_are_refused(sockets: Sockets) -> None:
    driver = SignedFrames(sockets[0], KEY, NONCE, is_driver=True)
    sockets[1].sendall(b"\xff\xff\xff\xff")
    with pytest.raises(ChannelBroken, match="4294967295 bytes"):
        driver.receive()
    sockets[1].sendall(b"\x00\x00\x00\x10half")
    sockets[1].close()
    with pytest.raises(ChannelBroken, match="closed"):
        driver.receive()


@pytest.mark.parametrize("error", [Fatal("bad file", remedy="Fix it"), Retryable("no broker"), PartStopped("paused")])
def test_an_error_of_an_executor_reads_the_same_at_the_driver(error: StrandlineError) -> None:
    found = parse_end(end_request(error))
    assert isinstance(found, StrandlineError)
    assert str(found) == str(error)
    assert isinstance(found, Retryable) == isinstance(error, Retryable)
    assert isinstance(found, PartStopped) == isinstance(error, PartStopped)

"""A link to a shard's process whose answers a test defines, and event loops to use it in."""

import asyncio
import fcntl
import os
import socket
import termios
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from strandline.clock import SystemClock
from strandline.errors import StrandlineError
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.answer_messages import answer_message
from strandline.node.query.answers import Answer, BucketsAnswer
from strandline.node.query.frames import encode_joined
from strandline.node.query.index_version import IndexVersionPage, version_path
from strandline.node.query.queries import Cancellation
from strandline.node.query.request_messages import request_message
from strandline.node.query.shard_link import ShardLink
from strandline.node.query.shard_requests import BucketsRequest, ShardRequest
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.workers import Workers

Result = TypeVar("Result")

CLOCK = SystemClock()
WAIT_S = 20.0
REQUEST = BucketsRequest(None, 1)
REQUEST_FRAME = encode_joined(request_message(REQUEST, WAIT_S))
LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


class Loop:
    """An event loop that only runs during `run`."""

    def __init__(self, kind: str = "uvloop") -> None:
        self._runner = asyncio.Runner(loop_factory=LOOPS[kind])

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine, for at most a minute."""

        async def bounded() -> Result:
            async with asyncio.timeout(60):
                return await work

        return self._runner.run(bounded())

    def close(self) -> None:
        self._runner.close()


class Service:
    """Returns the answers that the test defines."""

    def __init__(self, path: Path | None = None) -> None:
        """`path` is that of the socket next to which the index version is published."""
        self.answers: Callable[[ShardRequest, Cancellation], Answer] = lambda request, _: BucketsAnswer(
            (), (repr(request),)
        )
        self.ended: list[StrandlineError] = []
        self.begun, self.over = threading.Event(), threading.Event()
        self.page = IndexVersionPage(version_path(path) if path is not None else None)

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer:
        return self.answers(request, cancellation)

    def report(self) -> bytes:
        return ShardReport(Status(phase=Phase.REPLAYING, fraction=0.5), ProcessFigures.now()).to_json()

    def work_until_given_up(self, _request: ShardRequest, cancellation: Cancellation) -> Answer:
        """Work on an answer until it is cancelled."""
        self.begun.set()
        try:
            while not self.over.wait(0.001):
                cancellation.check()
            raise AssertionError
        except StrandlineError as error:
            self.ended.append(error)
            raise
        finally:
            self.over.set()


class LinkClient:
    """A link, and the loop and memory that it is used with."""

    def __init__(self, path: Path, loop: Loop, *, shard: int = 3, memory: int = 1 << 30) -> None:
        self.loop, self.memory = loop, AnswerMemory(memory)
        self.workers = Workers(2)
        self.link = ShardLink(path, shard, self.workers)

    def request(self, request: ShardRequest = REQUEST) -> Answer:
        """The answer to a request. Its memory is released."""
        return self.loop.run(self.send(request))

    async def send(self, request: ShardRequest = REQUEST) -> Answer:
        lease = self.memory.lease()
        try:
            return await self.link.request(encode_joined(request_message(request, WAIT_S)), lease)
        finally:
            lease.release()

    def look_up(self, frame: bytes) -> Answer | None:
        return self.loop.run(self.looked_up(frame))

    async def looked_up(self, frame: bytes) -> Answer | None:
        lease = self.memory.lease()
        try:
            return await self.link.look_up(frame, lease)
        finally:
            lease.release()

    def close(self) -> None:
        async def closed() -> None:
            self.link.close()
            # Wait until closed connections are gone.
            await asyncio.sleep(0)

        self.loop.run(closed())
        self.workers.close()


Script = Callable[[socket.socket], None]


@contextmanager
def scripted(path: Path, *scripts: Script) -> Iterator[socket.socket]:
    """A process that runs one script for each connection, one after the other. Yields its listening socket. All scripts
    must have ended at the end.
    """
    with socket.socket(socket.AF_UNIX) as listener, ThreadPoolExecutor(1) as threads:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(WAIT_S)

        def play() -> None:
            for script in scripts:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(WAIT_S)
                    script(connection)

        playing = threads.submit(play)
        yield listener
        playing.result(WAIT_S)


def answering(*words: str) -> Script:
    """Answer one request with each of these words, read one more request if there is one, and close the connection."""

    def script(connection: socket.socket) -> None:
        for word in words:
            assert connection.recv(1 << 16)
            connection.sendall(answer_frame(word))
        connection.recv(1 << 16)

    return script


def sending(data: bytes) -> Script:
    """Answer a request with these bytes, and close the connection."""

    def script(connection: socket.socket) -> None:
        assert connection.recv(1 << 16)
        connection.sendall(data)

    return script


def answer_frame(word: str) -> bytes:
    """The frame of an answer with this word as its warning."""
    return encode_joined(answer_message(BucketsAnswer((), (word,))))


def no_connection_waits(listener: socket.socket) -> bool:
    """Whether no connection waits to be accepted."""
    listener.setblocking(False)
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return True
    connection.close()
    return False


def send_in_pieces(connection: socket.socket, data: bytes, piece: int) -> None:
    """Send piece after piece, each only after the peer has read the previous one."""
    for first in range(0, len(data), piece):
        connection.sendall(data[first : first + piece])
        while fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)) != bytes(4):
            os.sched_yield()

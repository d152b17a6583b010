"""The front's end of the link to one shard: a small pool of connections, which outlives the shard's process."""

import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from strandline.clock import Clock
from strandline.node.query.answers import Answer
from strandline.node.query.asks import Ask
from strandline.node.query.edition import Edition, EditionReader
from strandline.node.query.frames import FrameDamaged, Message
from strandline.node.query.link_server import EDITION, REPORT
from strandline.node.query.link_socket import SHORT, LinkBroken, decode_frame, receive, receive_rest, send
from strandline.node.query.loop_links import Expected, LoopLinks
from strandline.node.query.messages import ERROR, answer_of, ask_message, error_of
from strandline.node.query.plain_lookups import lookups_path
from strandline.node.query.queries import Cancellation, QueryTimedOut, QueryUnavailable
from strandline.node.query.quick import Question
from strandline.node.shard.report import ShardReport

# So many connections are kept for the next questions.
_KEPT = 8
# Somebody may give a question up while its thread waits for the shard: it looks so often.
_LOOK_S = 0.05
_CONNECT_S = 5.0
# A page is handed over at once, or not now.
_PAGE_S = 0.5


class LinkClient:
    """Asks the shard whose process listens at a path. Any thread may."""

    def __init__(self, path: Path, shard: int, clock: Clock) -> None:
        """Nothing is connected before the first question."""
        self.shard = shard
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []
        self._page: tuple[EditionReader, socket.socket] | None = None
        self._loop_links = LoopLinks(path)
        self.lookups = LoopLinks(lookups_path(path))
        """An event loop's connections to the shard's `LookupServer`."""
        self._is_closed = False

    def close(self) -> None:
        """Close the connections that nobody uses now, and the others as they come back. Closing twice does nothing."""
        with self._lock:
            idle, self._idle, self._is_closed = self._idle, [], True
        for connection in idle:
            connection.close()
        self.lookups.close()
        self._loop_links.close()
        if self._page is not None:
            self._drop_page(self._page)

    def edition(self) -> Edition | None:
        """Of the lists that the shard gives now; None if they should not be kept, or that is not known. It does not
        wait, and asks nobody: see `strandline.node.query.edition`.
        """
        page = self._page
        if page is None:
            return None
        reader, connection = page
        if not _is_quiet(connection):
            self._drop_page(page)
            return None
        return reader.read()

    def begin(self, ask: Ask, cancellation: Cancellation) -> "Asked":
        """Send a question; its answer is fetched from what this returns, which must be asked for it or abandoned.

        Raises `QueryUnavailable` if nobody listens, `QueryCancelled` and `QueryTimedOut`.
        """
        cancellation.check()
        return Asked(self, ask_message(ask, cancellation.seconds_left), cancellation, self.take())

    def begin_at_once(
        self, question: Question, cancellation: Cancellation, came: Callable[[], None]
    ) -> "AskedAtOnce | None":
        """The same for an event loop, which must not wait: None if it would have to. `came` is called by the loop when
        there is nothing more for it to wait for.
        """
        asked = AskedAtOnce(self, question, cancellation, came)
        return asked if self._loop_links.ask(question.frame(cancellation.seconds_left), asked) else None

    def ask(self, ask: Ask, cancellation: Cancellation) -> Answer:
        """Send a question and fetch its answer, under the rules of `begin` and `Asked.answer`."""
        return self.begin(ask, cancellation).answer()

    def report(self, timeout: float) -> ShardReport:
        """How the shard is, also while it starts. Raises `QueryUnavailable` if it does not say so in time."""
        try:
            message = Asked(self, Message(REPORT, {}), Cancellation(self._clock, timeout), self.take()).receive()
        except QueryTimedOut as error:
            raise QueryUnavailable(f"shard {self.shard} did not tell how it is within {timeout:g} s") from error
        except FrameDamaged as error:
            raise QueryUnavailable(f"shard {self.shard}: {error.message}", remedy=error.remedy) from error
        if message.kind == ERROR:
            raise error_of(message)
        try:
            (document,) = message.columns
            return ShardReport.from_json(document.tobytes())
        except (ValueError, TypeError, KeyError) as error:
            raise QueryUnavailable(
                f"shard {self.shard} told {message.kind!r} in a way that is not understood here",
                remedy="Front and shards have to be of one version: restart the node",
            ) from error

    def take(self) -> tuple[socket.socket, bool]:
        """A connection, and whether it was used before."""
        idle = self._take_idle()
        return (idle, True) if idle is not None else (self.connect(), False)

    def _take_idle(self) -> socket.socket | None:
        while True:
            with self._lock:
                idle = self._idle.pop() if self._idle else None
            if idle is None or _is_quiet(idle):
                return idle
            idle.close()

    def connect(self) -> socket.socket:
        """A new connection."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_CONNECT_S)
            connection.connect(str(self._path))
            connection.setblocking(False)
        except OSError as error:
            connection.close()
            raise QueryUnavailable(
                f"shard {self.shard} is not running: nobody listens at {self._path.name}",
                remedy="Ask again in a while; the status page shows what became of it",
            ) from error
        return connection

    def fetch_page(self) -> None:
        """Let the shard hand over its page, if that is not here yet. The connection stays open: by its end one sees
        that of the process.
        """
        page = self._page
        if page is not None:
            if _is_quiet(page[1]):
                return
            # Of a process that has ended.
            self._drop_page(page)
        try:
            connection = self.connect()
        except (QueryUnavailable, OSError):
            return
        # Without a page lists are not kept; a later connection tries again.
        reader = _received_page(connection)
        if reader is None:
            connection.close()
        elif not self._keep_page(reader, connection):
            reader.close()
            connection.close()

    def _keep_page(self, reader: EditionReader, connection: socket.socket) -> bool:
        """Whether the page is kept: another thread may have been quicker."""
        with self._lock:
            if self._page is not None or self._is_closed:
                return False
            self._page = (reader, connection)
        return True

    def _drop_page(self, page: tuple[EditionReader, socket.socket]) -> None:
        """Let go of a page, unless another thread has."""
        with self._lock:
            if self._page is not page:
                return
            self._page = None
        page[0].close()
        page[1].close()

    def give_back(self, connection: socket.socket) -> None:
        """The connection is good for another question."""
        with self._lock:
            if not self._is_closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        connection.close()


class Asked:
    """A question that was sent. One thread fetches the answer."""

    def __init__(
        self,
        client: LinkClient,
        message: Message,
        cancellation: Cancellation,
        taken: tuple[socket.socket, bool],
    ) -> None:
        """`taken` is a connection of the client, and whether it was used before."""
        self._client, self._message, self._cancellation = client, message, cancellation
        self._connection, self._was_used = taken
        self._send()

    def answer(self) -> Answer:
        """The answer. Raises the shard's errors as they were raised there, `QueryUnavailable` if its process ends
        meanwhile, `QueryCancelled` and `QueryTimedOut`; the shard is told of these two by the end of the connection.
        """
        try:
            return answer_of(self.receive())
        except FrameDamaged as error:
            raise _damaged(self._client.shard, error) from error

    def receive(self) -> Message:
        """What came back, whatever it is."""
        try:
            message = self._receive()
        except BaseException:
            self.abandon()
            raise
        self._client.give_back(self._connection)
        if not self._was_used:
            self._client.fetch_page()
        return message

    def abandon(self) -> None:
        """Give the question up."""
        self._connection.close()

    def _receive(self) -> Message:
        try:
            return receive(self._connection, self._wait)
        except LinkBroken as error:
            if not (self._was_used and error.clean):
                raise _ended(self._client.shard, error) from error
        # It was kept from before a restart of the shard: nobody has read the question.
        self._connect_again()
        try:
            return receive(self._connection, self._wait)
        except LinkBroken as error:
            raise _ended(self._client.shard, error) from error

    def _send(self) -> None:
        try:
            try:
                send(self._connection, self._message, self._wait)
            except LinkBroken:
                # A new connection may have been refused before the question was read: what comes back says why.
                if self._was_used:
                    self._connect_again()
        except BaseException:
            self.abandon()
            raise

    def _connect_again(self) -> None:
        self._connection.close()
        self._connection, self._was_used = self._client.connect(), False
        with suppress(LinkBroken):
            send(self._connection, self._message, self._wait)

    def _wait(self, connection: socket.socket, events: int) -> None:
        _wait(connection, events, self._cancellation)


class AskedAtOnce(Expected):
    """A question that an event loop has asked. One thread fetches the answer, or the loop if it is here."""

    __slots__ = ("_cancellation", "_client", "_question")

    def __init__(
        self, client: LinkClient, question: Question, cancellation: Cancellation, came: Callable[[], None]
    ) -> None:
        super().__init__(came)
        self._client, self._question, self._cancellation = client, question, cancellation

    def answer(self) -> Answer:
        """The answer, under the rules of `Asked.answer`."""
        frame = self.frame
        try:
            if frame is not None:
                return answer_of(decode_frame(frame))
            if self.rest is not None:
                return answer_of(self._received(*self.rest))
        except FrameDamaged as error:
            raise _damaged(self._client.shard, error) from error
        # The process has ended. A new one may be there.
        return self._client.ask(self._question.ask(), self._cancellation)

    def _received(self, connection: socket.socket, begun: bytes) -> Message:
        try:
            message = receive_rest(connection, begun, lambda one, events: _wait(one, events, self._cancellation))
        except LinkBroken as error:
            connection.close()
            raise _ended(self._client.shard, error) from error
        except BaseException:
            connection.close()
            raise
        self._client.give_back(connection)
        return message


def _wait(connection: socket.socket, events: int, cancellation: Cancellation) -> None:
    """Until there is something to do on a connection, or nobody wants it any more."""
    poll = select.poll()
    poll.register(connection, events)
    while True:
        cancellation.check()
        if poll.poll(max(1, min(_LOOK_S, cancellation.seconds_left) * 1000)):
            return


def _ended(shard: int, error: LinkBroken) -> QueryUnavailable:
    return QueryUnavailable(
        f"the process of shard {shard} ended before it had answered: {error.message}",
        remedy="Ask again in a while; the status page shows what became of it",
    )


def _damaged(shard: int, error: FrameDamaged) -> QueryUnavailable:
    return QueryUnavailable(f"shard {shard} gave an answer that is none: {error.message}", remedy=error.remedy)


def _no_wait(_connection: socket.socket, _events: int) -> None:
    raise LinkBroken("the link takes nothing")


def _received_page(connection: socket.socket) -> EditionReader | None:
    """The page that the shard hands over; None if it does not."""
    try:
        connection.settimeout(_PAGE_S)
        send(connection, Message(EDITION, {}), _no_wait)
        _, files, _, _ = socket.recv_fds(connection, SHORT, 1)
        connection.setblocking(False)
        return EditionReader(files[0]) if files else None
    except (OSError, ValueError, LinkBroken):
        return None


def _is_quiet(connection: socket.socket) -> bool:
    """Whether the other side is there and has said nothing: what it might say now belongs to no question."""
    try:
        connection.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False

"""Frames over a socket of the machine: sent and received whole, within the time that a question has."""

import select
import socket
from collections.abc import Callable, Sequence

from strandline.errors import Retryable
from strandline.node.query.frames import MAX_BODY, PREFIX, Buffer, FrameDamaged, Message, decode, encode, lengths_of

# Linux takes so many buffers in one call.
_MOST_BUFFERS = 1024
# A message of up to this many bytes is received by one call, fits into what the kernel holds of a link, and is read in
# the event loop.
SMALL_MESSAGE = 64 << 10
# So many bytes are copied into one piece sooner than the kernel takes the pieces.
_JOINED = 4 << 10


class LinkBroken(Retryable):
    """The other side is gone. `clean` says that it went between two frames, or before the first byte of one."""

    def __init__(self, message: str, *, clean: bool = False) -> None:
        super().__init__(message)
        self.clean = clean


# Waits until the socket can be read (or written); raises when that takes too long.
Wait = Callable[[socket.socket, int], None]


def wait_forever(connection: socket.socket, events: int) -> None:
    """For a side that has nothing else to do."""
    poll = select.poll()
    poll.register(connection, events)
    poll.poll()


def send(connection: socket.socket, message: Message, wait: Wait) -> None:
    """Send a message. It does not block, even if the socket does; `wait` is called where it would."""
    left: list[Buffer] = encode(message)
    if sum(map(len, left)) <= _JOINED:
        left = [b"".join(left)]
    while left:
        try:
            if len(left) == 1:
                sent = connection.send(left[0], socket.MSG_DONTWAIT)
            else:
                sent = connection.sendmsg(left[:_MOST_BUFFERS], (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            wait(connection, select.POLLOUT)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}", clean=True) from error
        left = _behind(left, sent)


def receive(connection: socket.socket, wait: Wait, most: int = MAX_BODY) -> Message:
    """Receive a message whose header and body have no more than `most` bytes each; `wait` is called where a socket that
    does not block has nothing yet. Raises `LinkBroken`, and `FrameDamaged`, after which the connection is good for
    nothing.
    """
    # Most messages are short, and are here whole. Nothing follows one before it is answered.
    return receive_rest(connection, _received_some(connection, wait), wait, most)


def receive_rest(connection: socket.socket, begun: bytes | bytearray, wait: Wait, most: int = MAX_BODY) -> Message:
    """The same for a message of which some is here."""
    if len(begun) < PREFIX.size:
        begun = bytearray(begun) + _received(connection, PREFIX.size - len(begun), wait)
    header, body = lengths_of(begun[: PREFIX.size], most)
    behind = PREFIX.size + header
    if len(begun) > behind + body:
        raise FrameDamaged(f"{len(begun) - behind - body} bytes came behind a frame")
    if len(begun) == behind + body:
        return decode(begun[PREFIX.size : behind], bytearray(begun[behind:]))
    text = bytearray(begun[PREFIX.size :])
    if len(text) < header:
        text += _received(connection, header - len(text), wait)
    # The body in memory of its own: its columns are aligned there.
    return decode(text[:header], _received(connection, body, wait, text[header:]))


def _received_some(connection: socket.socket, wait: Wait) -> bytes:
    while True:
        try:
            data = connection.recv(SMALL_MESSAGE)
        except BlockingIOError:
            wait(connection, select.POLLIN)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}", clean=True) from error
        if not data:
            raise LinkBroken("the other side has closed the link", clean=True)
        return data


def _received(connection: socket.socket, size: int, wait: Wait, begun: bytearray | None = None) -> bytearray:
    """So many bytes, of which some may be here already."""
    # Memory comes as bytes do: a length that is not true must not take it all at once.
    data = begun if begun is not None else bytearray()
    piece = 1 << 20
    while len(data) < size:
        start = len(data)
        data.extend(bytes(min(piece, size - start)))
        view = memoryview(data)[start:]
        try:
            _fill(connection, view, wait)
        finally:
            view.release()
        piece = max(piece, len(data))
    return data


def _fill(connection: socket.socket, view: memoryview, wait: Wait) -> None:
    at = 0
    while at < len(view):
        try:
            got = connection.recv_into(view[at:])
        except BlockingIOError:
            wait(connection, select.POLLIN)
            continue
        except OSError as error:
            raise LinkBroken(f"the link is broken: {error.strerror}") from error
        if got == 0:
            raise LinkBroken("the other side has closed the link")
        at += got


def _behind(buffers: Sequence[Buffer], sent: int) -> list[Buffer]:
    """What is left of some buffers once so many bytes are sent."""
    for place, buffer in enumerate(buffers):
        if sent < len(buffer):
            return [memoryview(buffer)[sent:], *buffers[place + 1 :]]
        sent -= len(buffer)
    return []

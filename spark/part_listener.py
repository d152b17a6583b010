"""The driver's port for executors that run parts, with one thread per connection."""

import os
import socket
import socketserver
import threading
from types import TracebackType
from typing import Self

import structlog

from strandline.spark.part_channel import NONCE_BYTES, ChannelBroken, DriverReply, SignedFrames, parse_request
from strandline.spark.part_slots import PartSlot
from strandline.store.bulk_jobs import BulkPart

_LOG = structlog.get_logger(__name__)
_KEY_BYTES = 32
# A task sends requests before and after each chunk, and while it waits. After a silence this long, its host is lost.
_SILENCE_S = 600.0
# Closing the listener takes at most this long.
_POLL_S = 0.05
_SlotKey = tuple[str, str, int, int]


class PartListener:
    """Answers executors until its block ends."""

    def __init__(self, host: str, port: int = 0, *, bind: str = "") -> None:
        """Executors connect to `host`. Port 0 is any free port. `bind` is the address to listen on, if it differs from
        `host`.
        """
        self.key = os.urandom(_KEY_BYTES)
        self._host, self._slots = host, dict[_SlotKey, PartSlot]()
        self.changed = threading.Event()
        """Set when a message or a lost connection may have ended a part."""
        listener = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                listener._serve(self.request)

        self._server = _Server((bind or host, port), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_S,), name="part-listener", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        """The address that executors connect to."""
        return self._host, int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add(self, slot: PartSlot) -> None:
        """Answer the task of a part."""
        self._slots[_key(slot.leased.part)] = slot

    def remove(self, slot: PartSlot) -> None:
        """Tell all tasks of a part that its lease has ended."""
        self._slots.pop(_key(slot.leased.part), None)

    def _serve(self, connection: socket.socket) -> None:
        """Answer one task until it ends. `connection` identifies the task."""
        connection.settimeout(_SILENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        slot: PartSlot | None = None
        try:
            nonce = os.urandom(NONCE_BYTES)
            connection.sendall(nonce)
            frames = SignedFrames(connection, self.key, nonce, is_driver=True)
            while True:
                request = parse_request(frames.receive())
                if request.part is not None:
                    slot = self._slots.get(request.part)
                answer = (
                    slot.answer(connection, request)
                    if slot is not None
                    else DriverReply(stop="the part's lease is over")
                )
                frames.send(answer)
                if request.is_end:
                    self.changed.set()
                    return
        except (ChannelBroken, OSError) as error:
            if slot is not None:
                slot.connection_lost(connection, str(error))
                self.changed.set()
            else:
                _LOG.warning("refused a connection that belongs to no task", error=str(error))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    # Closing does not wait for threads: each ends with its task, or with the process.
    block_on_close = False
    request_queue_size = 256


def _key(part: BulkPart) -> _SlotKey:
    return *part.primary_key, part.epoch

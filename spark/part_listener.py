"""Where executors ask the driver about the parts that they run: a port of the driver, and a thread a connection."""

import os
import socket
import socketserver
import threading
from types import TracebackType
from typing import Self

import structlog

from strandline.spark.part_channel import NONCE_BYTES, Answer, ChannelBroken, Frames, request_of
from strandline.spark.part_slots import PartSlot
from strandline.store.bulk_jobs import BulkPart

_LOG = structlog.get_logger(__name__)
_KEY_BYTES = 32
# A task asks before and after each chunk, and while it waits. One that says nothing for so long has lost its host.
_SILENCE_S = 600.0
# How long the end of the listener takes at most.
_POLL_S = 0.05
_SlotKey = tuple[str, str, int, int]


class PartListener:
    """Answers executors while its block lasts."""

    def __init__(self, host: str, port: int = 0, *, bind: str = "") -> None:
        """Executors reach it by `host`. Port 0 is any free one. `bind` is the address to listen on, if that differs."""
        self.key = os.urandom(_KEY_BYTES)
        self._host, self._slots = host, dict[_SlotKey, PartSlot]()
        self.changed = threading.Event()
        """Set when something was heard that may have ended a part."""
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
        """Where executors reach it."""
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
        """Tell all tasks of a part that its lease is over."""
        self._slots.pop(_key(slot.leased.part), None)

    def _serve(self, connection: socket.socket) -> None:
        """Answer one task until it ends. `connection` tells it from others."""
        connection.settimeout(_SILENCE_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        slot: PartSlot | None = None
        try:
            nonce = os.urandom(NONCE_BYTES)
            connection.sendall(nonce)
            frames = Frames(connection, self.key, nonce, is_driver=True)
            while True:
                ask = request_of(frames.receive())
                if ask.part is not None:
                    slot = self._slots.get(ask.part)
                answer = slot.answer(connection, ask) if slot is not None else Answer(stop="the part's lease is over")
                frames.send(answer)
                if ask.is_end:
                    self.changed.set()
                    return
        except (ChannelBroken, OSError) as error:
            if slot is not None:
                slot.lost(connection, str(error))
                self.changed.set()
            else:
                _LOG.warning("a connection of no task was refused", error=str(error))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    # Threads are not waited for: each ends with its task, or with the process.
    block_on_close = False
    request_queue_size = 256


def _key(part: BulkPart) -> _SlotKey:
    return *part.place, part.epoch

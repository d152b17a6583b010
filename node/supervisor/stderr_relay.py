"""Relays a child's stderr to our own, line by line, and keeps the last line."""

import os
import select
import threading
from contextlib import suppress
from typing import IO

_READ_BYTES = 64 << 10
# Longer lines are relayed in pieces.
_MAX_LINE_BYTES = 64 << 10
_MAX_LAST_LINE_BYTES = 4 << 10
_STDERR = 2


class StderrRelay:
    """Reads a pipe until all its writers have closed it. It has its own thread, so that a child never waits for the
    supervisor.
    """

    def __init__(self, pipe: IO[bytes], to: int = _STDERR) -> None:
        self._pipe, self._to = pipe, to
        self._lock = threading.Lock()
        self._unfinished = b""
        self._last = b""
        os.set_blocking(pipe.fileno(), False)
        threading.Thread(target=self._pass_on, name="stderr relay", daemon=True).start()

    def last_line(self) -> str:
        """The last non-empty line that was written so far."""
        self._drain()
        with self._lock:
            return (self._unfinished.strip() or self._last)[-_MAX_LAST_LINE_BYTES:].decode("utf-8", "replace")

    def _pass_on(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while True:
            poll.poll()
            if self._drain():
                return

    def _drain(self) -> bool:
        """Relay what is available. Returns whether the pipe has ended."""
        with self._lock:
            while not self._pipe.closed:
                try:
                    piece = os.read(self._pipe.fileno(), _READ_BYTES)
                except BlockingIOError:
                    return False
                if not piece:
                    self._write(self._unfinished)
                    self._unfinished = b""
                    self._pipe.close()
                    return True
                self._take(piece)
            return True

    def _take(self, piece: bytes) -> None:
        """Relay only complete lines, so that the lines of several children don't mix."""
        text = self._unfinished + piece
        end = text.rfind(b"\n") + 1
        if not end and len(text) > _MAX_LINE_BYTES:
            end = len(text)
        complete, self._unfinished = text[:end], text[end:]
        self._write(complete)

    def _write(self, text: bytes) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        if lines:
            self._last = lines[-1].strip()
        # Our own stderr may be closed, such as a closed terminal; this must not stop the child.
        with suppress(OSError):
            while text:
                text = text[os.write(self._to, text) :]

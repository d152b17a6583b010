"""What a child says on stderr: passed on to our own as it comes, line by line, with its last line kept."""

import os
import select
import threading
from contextlib import suppress
from typing import IO

_PIECE = 64 << 10
# A line that is longer is passed on in pieces.
_LONGEST = 64 << 10
_KEPT = 4 << 10
_STDERR = 2


class Voice:
    """Reads a pipe until all who hold its other end are gone. Its own thread does that, so that a child never waits for
    the supervisor to be heard.
    """

    def __init__(self, pipe: IO[bytes], to: int = _STDERR) -> None:
        self._pipe, self._to = pipe, to
        self._lock = threading.Lock()
        self._unfinished = b""
        self._last = b""
        os.set_blocking(pipe.fileno(), False)
        threading.Thread(target=self._pass_on, name="voice", daemon=True).start()

    def last_line(self) -> str:
        """The last line that is not empty, of all that was said by now."""
        self._drain()
        with self._lock:
            return (self._unfinished.strip() or self._last)[-_KEPT:].decode("utf-8", "replace")

    def _pass_on(self) -> None:
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while True:
            poll.poll()
            if self._drain():
                return

    def _drain(self) -> bool:
        """Pass on what there is; whether that was all for ever."""
        with self._lock:
            while not self._pipe.closed:
                try:
                    piece = os.read(self._pipe.fileno(), _PIECE)
                except BlockingIOError:
                    return False
                if not piece:
                    self._say(self._unfinished)
                    self._unfinished = b""
                    self._pipe.close()
                    return True
                self._hear(piece)
            return True

    def _hear(self, piece: bytes) -> None:
        """Whole lines go on at once, so that those of several children don't mix."""
        heard = self._unfinished + piece
        end = heard.rfind(b"\n") + 1
        if not end and len(heard) > _LONGEST:
            end = len(heard)
        whole, self._unfinished = heard[:end], heard[end:]
        self._say(whole)

    def _say(self, text: bytes) -> None:
        lines = [line for line in text.splitlines() if line.strip()]
        if lines:
            self._last = lines[-1].strip()
        # Nobody may hear us any more (a terminal that was closed); the child goes on all the same.
        with suppress(OSError):
            while text:
                text = text[os.write(self._to, text) :]

"""The socket on which a service tells systemd how it is, by the protocol of sd_notify(3)."""

import socket
from collections.abc import Mapping
from contextlib import suppress

import structlog

_LOG = structlog.get_logger(__name__)
SOCKET_VARIABLE = "NOTIFY_SOCKET"
# systemd reads so much of a message; a longer one would be lost as a whole.
_MOST = 4096


class NotifySocket:
    """Sends messages, or nothing at all where nobody listens. Sending never waits, and never raises: a service must not
    end because its manager is busy.
    """

    def __init__(self, address: str | None) -> None:
        """`address` is what $NOTIFY_SOCKET says: a path, or @ and a name of the abstract namespace."""
        self._socket: socket.socket | None = None
        if not address:
            return
        if address[0] not in "/@":
            _LOG.warning("systemd can't be told anything: the socket's address is of no known kind", address=address)
            return
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "NotifySocket":
        """The one that the environment names."""
        return cls(environ.get(SOCKET_VARIABLE))

    @property
    def is_heard(self) -> bool:
        """Whether there is somebody to tell."""
        return self._socket is not None

    def send(self, *assignments: str) -> bool:
        """Send assignments such as "READY=1" in one message; whether it was taken."""
        if self._socket is None or not assignments:
            return False
        message = "\n".join(line.replace("\n", " ") for line in assignments).encode()
        try:
            self._socket.sendto(message[:_MOST], self._address)
        except OSError as error:
            _LOG.warning("systemd could not be told", error=error.strerror)
            return False
        return True

    def close(self) -> None:
        """Tell nothing any more."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None


def watchdog_seconds(environ: Mapping[str, str], pid: int) -> float | None:
    """Within how many seconds systemd wants to hear from this process each time; None if it does not."""
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isascii() or not microseconds.isdigit() or int(microseconds) == 0:
        return None
    return int(microseconds) / 1_000_000

"""The socket through which a service notifies systemd, with the protocol of sd_notify(3)."""

import socket
from collections.abc import Mapping
from contextlib import suppress

import structlog

_LOG = structlog.get_logger(__name__)
SOCKET_VARIABLE = "NOTIFY_SOCKET"
# The time that a process itself needs to end, after everything that it waits for has ended.
_STOP_SLACK_S = 15.0
# systemd drops longer messages.
_MAX_MESSAGE = 4096


class NotifySocket:
    """Sends messages, or nothing if $NOTIFY_SOCKET is not set. Sending never blocks and never raises: a service must
    not end because its manager is busy.
    """

    def __init__(self, address: str | None) -> None:
        """`address` is the value of $NOTIFY_SOCKET: a path, or @ and a name in the abstract namespace."""
        self._socket: socket.socket | None = None
        if not address:
            return
        if address[0] not in "/@":
            _LOG.warning(
                "systemd can't be notified: the address in $NOTIFY_SOCKET is neither a path nor an abstract name",
                address=address,
            )
            return
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "NotifySocket":
        """The socket that the environment names."""
        return cls(environ.get(SOCKET_VARIABLE))

    @property
    def is_open(self) -> bool:
        """Whether messages are sent."""
        return self._socket is not None

    def send(self, *assignments: str) -> bool:
        """Send assignments such as "READY=1" in one message. Returns whether it was sent."""
        if self._socket is None or not assignments:
            return False
        message = "\n".join(line.replace("\n", " ") for line in assignments).encode()
        try:
            self._socket.sendto(message[:_MAX_MESSAGE], self._address)
        except OSError as error:
            _LOG.warning("systemd could not be notified", error=error.strerror)
            return False
        return True

    def close(self) -> None:
        """Close the socket. Afterwards, `send` does nothing."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
            self._socket = None


def watchdog_seconds(environ: Mapping[str, str], pid: int) -> float | None:
    """The watchdog's interval for this process; None without a watchdog."""
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    microseconds = environ.get("WATCHDOG_USEC", "")
    if not microseconds.isascii() or not microseconds.isdigit() or int(microseconds) == 0:
        return None
    return int(microseconds) / 1_000_000


def stopping_notice(stop_timeout_s: float) -> tuple[str, ...]:
    """The assignments that announce a stop, which takes at most this long."""
    microseconds = round((stop_timeout_s + _STOP_SLACK_S) * 1_000_000)
    return ("STOPPING=1", "STATUS=stopping", f"EXTEND_TIMEOUT_USEC={microseconds}")

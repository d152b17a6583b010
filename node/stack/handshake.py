"""The protocol between `stack up` and the keeper that it starts: lines of JSON over a socket pair.

`up` sends the options. The keeper sends each step, and finally either "up" or "failed" with the error. `up` then
answers "keep". Until the keeper has received this answer, it stops everything if the other end of the socket is closed,
because `up` was killed or interrupted. After it, the keeper runs independently.
"""

import json
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from strandline.errors import ExitCode, StrandlineError
from strandline.node.json_values import json_value
from strandline.node.output import Detailed
from strandline.node.stack.errors import KeeperFailed
from strandline.node.stack.options import CassandraClient, StackOptions
from strandline.node.stack.server import Phase
from strandline.node.stack.stack import StackStep

Message = dict[str, Any]


class Handshake:
    """One end of the connection."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._lines = end.makefile("rb")

    @classmethod
    def pair(cls) -> tuple[Self, socket.socket]:
        """A connection: our end, and the other end's socket, for a child process."""
        near, far = socket.socketpair()
        return cls(near), far

    @classmethod
    def inherited(cls, descriptor: int) -> Self:
        """The end that this process has inherited from its parent as a file descriptor."""
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send a message. Does nothing if the other end is closed, which `is_peer_closed` and `receive` report."""
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self) -> Message | None:
        """Wait for the next message; None when the other end is closed."""
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            return None
        # An incomplete line: the other end was closed while it sent.
        if not line.endswith(b"\n"):
            return None
        message: Message = json.loads(line)
        return message

    def is_peer_closed(self) -> bool:
        """Whether the other end is closed, without waiting. Call this only while no message is expected."""
        try:
            return self._socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def shut_down_sending(self) -> None:
        """Close the sending direction, as if this process had ended. Messages can still be received."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def options_message(options: StackOptions) -> Message:
    return {"type": "options", "options": json_value(options)}


def options_from(message: Message) -> StackOptions:
    fields = dict(message["options"])
    client = fields["cassandra_client"]
    return StackOptions(
        **fields
        | {
            "state_dir": Path(fields["state_dir"]),
            "java_home": _path(fields["java_home"]),
            "cassandra_client": CassandraClient(
                login=tuple(client["login"]) if client["login"] else None,
                ca=_path(client["ca"]),
                certificate=_path(client["certificate"]),
                key=_path(client["key"]),
            ),
        }
    )


def step_message(step: StackStep) -> Message:
    return {"type": "step", **asdict(step)}


def step_from(message: Message) -> StackStep:
    return StackStep(message["server"], message["title"], Phase(message["phase"]), message["elapsed"])


def failure_message(error: StrandlineError) -> Message:
    return {
        "type": "failed",
        "error": type(error).__name__,
        "message": error.message,
        "remedy": error.remedy,
        "exit_code": int(error.exit_code),
        "lines": [str(block) for block in error.blocks()] if isinstance(error, Detailed) else [],
        "details": json_value(error.details()) if isinstance(error, Detailed) else {},
    }


def failure_from(message: Message) -> KeeperFailed:
    return KeeperFailed(
        message["message"],
        remedy=message["remedy"],
        kind=message["error"],
        exit_code=ExitCode(message["exit_code"]),
        lines=message["lines"],
        details=message["details"],
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None

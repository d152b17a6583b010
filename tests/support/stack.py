"""Stand-ins for the stack's servers: real processes, ports and signals, without a JVM's start time."""

import json
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from strandline.clock import Clock, SystemClock, wait_until
from strandline.errors import StrandlineError
from strandline.node.stack.errors import Unhealthy
from strandline.node.stack.handshake import Handshake
from strandline.node.stack.keeper import keep, keep_detached
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import LOOPBACK, Ports
from strandline.node.stack.process import ProcessIdentity
from strandline.node.stack.server import Server
from strandline.node.stack.state import StateFolder

STACK_TIMEOUT = 90.0
"""The time in seconds after which a condition that a test waits for has failed."""

SCRIPT = """
import json, signal, socket, sys
behaviour = json.loads(sys.argv[1])
log = open(behaviour["log"], "a", buffering=1)
log.write("begins\\n")
if behaviour["log_line"]:
    log.write(behaviour["log_line"] + "\\n")
if behaviour["exit_code"] is not None:
    sys.exit(behaviour["exit_code"])
if behaviour["ignores_sigterm"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    listener.bind(("127.0.0.1", behaviour["port"]))
except OSError as error:
    log.write(f"bind: {error.strerror}\\n")
    sys.exit(1)
listener.listen()
while True:
    client, _ = listener.accept()
    client.sendall(behaviour["answer"].encode())
    client.close()
"""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """The behaviour of a stand-in for a server."""

    answer: str = "healthy"
    exit_code: int | None = None
    """The exit code with which it ends immediately; None if it keeps running."""
    log_line: str = ""
    """A line for its log."""
    ignores_sigterm: bool = False
    """Whether it ignores SIGTERM."""
    prepares: bool = False


class StandIn(Server):
    """A minimal server."""

    title: ClassVar[str] = "Stand-in"

    def __init__(self, folder: StateFolder, port: int, clock: Clock, behaviour: Behaviour) -> None:
        super().__init__(folder, port, clock)
        self._behaviour = behaviour
        self.was_prepared = False

    @property
    def version(self) -> str:
        return "1.2.3"

    def files(self) -> Mapping[Path, str]:
        return {self.folder.conf(self.name) / "behaviour.json": json.dumps(asdict(self._behaviour))}

    def preparation(self) -> list[str] | None:
        return [sys.executable, "-c", "pass"] if self._behaviour.prepares else None

    def finish_preparation(self) -> None:
        self.was_prepared = True

    def command(self) -> list[str]:
        behaviour = {**asdict(self._behaviour), "port": self.port, "log": str(self.log)}
        return [sys.executable, "-I", "-S", "-c", SCRIPT, json.dumps(behaviour)]

    def environment(self) -> dict[str, str]:
        return {}

    def check(self, timeout: float) -> None:
        with socket.create_connection((LOOPBACK, self.port), timeout) as connection:
            answer = connection.recv(100).decode()
        if answer != "healthy":
            raise Unhealthy(f"it answered {answer!r}")


class KafkaStandIn(StandIn):
    name: ClassVar[str] = "kafka"


class CassandraStandIn(StandIn):
    name: ClassVar[str] = "cassandra"


@dataclass(frozen=True, slots=True)
class StandIns:
    """Builds two stand-ins, instead of Kafka and Cassandra."""

    kafka: Behaviour = Behaviour()
    cassandra: Behaviour = Behaviour()

    def __call__(self, folder: StateFolder, ports: Ports, _options: StackOptions, clock: Clock) -> Sequence[Server]:
        return (
            KafkaStandIn(folder, ports.kafka, clock, self.kafka),
            CassandraStandIn(folder, ports.cassandra, clock, self.cassandra),
        )


def options(folder: Path, **changes: object) -> StackOptions:
    """Options that work on any machine that can run the tests."""
    return StackOptions(**{"state_dir": folder, "start_timeout": STACK_TIMEOUT, "min_free_disk": 0, **changes})


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition becomes true before the timeout."""
    return wait_until(condition, timeout=STACK_TIMEOUT, clock=SystemClock(), poll=0.01)


def gone(process: ProcessIdentity | None) -> bool:
    """Whether the process has ended. The test must pass a process."""
    assert process is not None
    return not process.alive()


def fake_keeper_command(descriptor: int, stand_ins: StandIns) -> list[str]:
    """A command that runs a keeper of stand-ins, like the one that `strandline stack up` starts."""
    return [sys.executable, __file__, "detached", str(descriptor), json.dumps(asdict(stand_ins))]


def fake_foreground_command(folder: Path, stand_ins: StandIns) -> list[str]:
    """A command like `strandline stack up --foreground`, for stand-ins. It writes a line once they are up."""
    return [sys.executable, __file__, "foreground", str(folder), json.dumps(asdict(stand_ins))]


def main(mode: str, argument: str, behaviours: str) -> int:
    stand_ins = StandIns(**{name: Behaviour(**behaviour) for name, behaviour in json.loads(behaviours).items()})
    clock = SystemClock()
    try:
        if mode == "detached":
            keep_detached(Handshake.inherited(int(argument)), clock=clock, build=stand_ins)
        else:
            given = options(Path(argument))
            keep(given, on_step=lambda _: None, on_up=lambda _: print("up", flush=True), clock=clock, build=stand_ins)  # noqa: T201
    except StrandlineError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

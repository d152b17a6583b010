"""The current status of a stack, determined from its lock, its processes and health checks of its servers."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.clock import Clock
from strandline.node.stack.errors import Unhealthy
from strandline.node.stack.options import CassandraClient
from strandline.node.stack.ports import LOOPBACK, Ports, is_listening
from strandline.node.stack.process import resident_bytes
from strandline.node.stack.record import ServerRecord, StackRecord
from strandline.node.stack.state import StateFolder

CHECK_TIMEOUT = 3.0


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of one server. `problem` is empty if and only if it is healthy."""

    name: str
    healthy: bool
    problem: str
    address: str
    version: str
    pid: int | None
    resident_bytes: int | None
    data_bytes: int
    log: str


@dataclass(frozen=True, slots=True)
class StackStatus:
    """The status of the stack. It is healthy if both servers are. `state` is "down" if no process holds the lock."""

    healthy: bool
    state: str
    state_dir: str
    keeper_pid: int | None
    uptime_seconds: float | None
    failure: str
    servers: tuple[ServerStatus, ...]


Check = Callable[[ServerRecord, Ports], None]


def stack_status(folder: StateFolder, *, clock: Clock, check: Check | None = None) -> StackStatus:
    """The status of the stack in this folder. Each health check takes at most `CHECK_TIMEOUT` seconds."""
    held = folder.is_held()
    record = folder.read()
    if record is None or not held:
        return StackStatus(
            healthy=False,
            state="down",
            state_dir=str(folder.root),
            keeper_pid=None,
            uptime_seconds=None,
            # If the keeper was killed, the record still says that the stack runs.
            failure=_failure(record),
            servers=(),
        )
    servers = tuple(_server(server, record, folder, check or check_server) for server in record.servers)
    return StackStatus(
        healthy=bool(servers) and all(server.healthy for server in servers),
        state=record.state,
        state_dir=str(folder.root),
        keeper_pid=record.keeper.pid,
        uptime_seconds=max(0, clock.now_ms() - record.started_at_ms) / 1000,
        failure="",
        servers=servers,
    )


def check_server(server: ServerRecord, ports: Ports) -> None:
    """Use the server as a client. Raises `Unhealthy` if that fails."""
    if server.name == "kafka":
        from strandline.node.stack.kafka_health import check_kafka  # noqa: PLC0415 - loads the client library

        check_kafka(f"{LOOPBACK}:{ports.kafka}", {}, CHECK_TIMEOUT)
    else:
        from strandline.node.stack.cassandra_health import check_cassandra  # noqa: PLC0415 - loads the driver

        check_cassandra(LOOPBACK, ports.cassandra, CassandraClient(), CHECK_TIMEOUT)


def _server(server: ServerRecord, record: StackRecord, folder: StateFolder, check: Check) -> ServerStatus:
    port = record.ports.kafka if server.name == "kafka" else record.ports.cassandra
    problem = _problem(server, port, record, check)
    pid = server.process.pid if server.process and server.process.alive() else None
    return ServerStatus(
        name=server.name,
        healthy=not problem,
        problem=problem,
        address=f"{LOOPBACK}:{port}",
        version=server.version,
        pid=pid,
        resident_bytes=resident_bytes(pid) if pid else None,
        data_bytes=folder.size(server.name),
        log=server.log,
    )


def _problem(server: ServerRecord, port: int, record: StackRecord, check: Check) -> str:
    if server.process is None or not server.process.alive():
        return "its process has ended"
    if not is_listening(port, server.process.pid):
        return f"it does not listen yet ({record.state})"
    try:
        check(server, record.ports)
    except Unhealthy as error:
        return error.message
    return ""


def _failure(record: StackRecord | None) -> str:
    if record is None:
        return ""
    if record.failure:
        return record.failure
    return "" if record.state == "down" else "its keeper was killed"

"""Loopback ports: choosing free ones, and finding the process that listens on one."""

import socket
from collections.abc import Iterator, Set
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from strandline.node.stack.errors import PortInUse
from strandline.node.stack.options import StackOptions
from strandline.node.stack.process import command_name

LOOPBACK = "127.0.0.1"
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of a stack. Clients use the first two. The servers use the others internally."""

    kafka: int = 0
    cassandra: int = 0
    kafka_controller: int = 0
    cassandra_storage: int = 0


def choose_ports(options: StackOptions, previous: Ports) -> Ports:
    """Four different ports that were free a moment ago.

    A port from the options is used, or `PortInUse` is raised. Other ports are those of the previous run if they are
    free, so that addresses stay the same. Another process can still bind a port before the server does.
    """
    wanted = {
        "kafka": (options.kafka_port, previous.kafka, "stack.kafka_port"),
        "cassandra": (options.cassandra_port, previous.cassandra, "stack.cassandra_port"),
        "kafka_controller": (0, previous.kafka_controller, ""),
        "cassandra_storage": (0, previous.cassandra_storage, ""),
    }
    ports = Ports()
    # All stay bound until the last one is chosen, so they differ. Fixed ports come first: a random one could be equal.
    with ExitStack() as held:
        for name, (fixed, before, setting) in sorted(wanted.items(), key=lambda item: item[1][0] == 0):
            bound = held.enter_context(_bind_fixed(fixed, setting) if fixed else _bind_any(before))
            ports = replace(ports, **{name: bound.getsockname()[1]})
    return ports


def free_ports(count: int) -> tuple[int, ...]:
    """Different ports that were free a moment ago."""
    with ExitStack() as held:
        return tuple(held.enter_context(_bind(0)).getsockname()[1] for _ in range(count))


def is_listening(port: int, pid: int) -> bool:
    """Whether this process listens on the port, without connecting to it.

    A connection attempt is not a usable test: if no process listens and the port is in the ephemeral range, the attempt
    can be connected to itself, and then prevents the server from binding.
    """
    # The cheap check comes first: for `_listeners`, the kernel reads its table of all connections, which takes
    # milliseconds.
    return not _is_free(port) and next(_processes_with(_listeners(port), str(pid)), None) is not None


def port_holder(port: int) -> str:
    """A text about the process that listens on the port, such as "java (pid 812)"."""
    listeners = _listeners(port)
    pid = next(_processes_with(listeners, "[0-9]*"), None)
    if pid is not None:
        return f"{command_name(pid) or 'a process'} (pid {pid})"
    return "a process of another user" if listeners else "a process that is gone by now, or doesn't listen"


def _bind_fixed(port: int, setting: str) -> socket.socket:
    try:
        return _bind(port)
    except OSError as error:
        if isinstance(error, PermissionError):
            raise PortInUse(
                f"port {port} of {LOOPBACK} ({setting}) may be bound only by root",
                remedy=f"Set {setting} to 1024 or above, or to 0 for any free port",
            ) from error
        raise PortInUse(
            f"port {port} of {LOOPBACK} ({setting}) is in use by {port_holder(port)}",
            remedy=f"End that process, or set {setting} to another port, or to 0 for any free one",
        ) from error


def _bind_any(preferred: int) -> socket.socket:
    if preferred:
        try:
            return _bind(preferred)
        except OSError:  # In use by now: any other port will do.
            return _bind(0)
    return _bind(0)


def _bind(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # As the servers do: connections of the previous run in TIME_WAIT don't block the port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
        # Two sockets with that option can both be bound, but only one of them can listen.
        bound.listen(1)
    except OSError:
        bound.close()
        raise
    return bound


def _is_free(port: int) -> bool:
    """Whether no process listens on the port. The port is bound for a moment, which does not prevent a server with
    SO_REUSEADDR from binding it, as the stack's servers have.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _processes_with(links: Set[str], pids: str) -> Iterator[int]:
    """The processes, among those whose ids match `pids`, that have an open file with one of these links."""
    for descriptor in Path("/proc").glob(f"{pids}/fd/*") if links else ():
        try:
            found = str(descriptor.readlink()) in links
        except OSError:  # The process or the descriptor no longer exists, or belongs to another user.
            continue
        if found:
            yield int(descriptor.parts[2])


def _listeners(port: int) -> Set[str]:
    """The sockets that listen on the port, as links in /proc/PID/fd."""
    links = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except FileNotFoundError:  # A kernel without IPv6.
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                links.add(f"socket:[{fields[9]}]")
    return links

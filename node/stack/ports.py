"""Loopback ports: choosing free ones, and saying who holds one that is not free."""

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
    """The ports of a stack. Clients see the first two; the servers talk to themselves on the others."""

    kafka: int = 0
    cassandra: int = 0
    kafka_controller: int = 0
    cassandra_storage: int = 0


def choose_ports(options: StackOptions, previous: Ports) -> Ports:
    """Four different ports that were free a moment ago.

    A port that the options fix is taken or refused; otherwise the previous run's is taken again where it is free, so
    that addresses last. Nothing keeps another process from taking one before the server binds it.
    """
    wanted = {
        "kafka": (options.kafka_port, previous.kafka, "stack.kafka_port"),
        "cassandra": (options.cassandra_port, previous.cassandra, "stack.cassandra_port"),
        "kafka_controller": (0, previous.kafka_controller, ""),
        "cassandra_storage": (0, previous.cassandra_storage, ""),
    }
    ports = Ports()
    # All are held until the last is chosen: so they differ. The fixed ones go first, or a chance port could be one.
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
    """Whether this very process listens on the port, without connecting to it.

    A connection attempt would not do as a test: where nobody listens, and the port is one that the kernel gives to
    clients, an attempt can be connected to itself and then keep the server from binding.
    """
    # First what is cheap: for `_listeners` the kernel walks all of its table of connections, which takes milliseconds.
    return not _is_free(port) and next(_processes_with(_listeners(port), str(pid)), None) is not None


def port_holder(port: int) -> str:
    """Who listens on the port, for a person to read: "java (pid 812)", or what is known of it."""
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
        except OSError:  # Taken in the meantime: any other will do.
            return _bind(0)
    return _bind(0)


def _bind(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # As the servers do it: connections of the previous run that are still fading away don't hold the port.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
        # Two sockets with that option may both be bound; only one may listen. This is the real test.
        bound.listen(1)
    except OSError:
        bound.close()
        raise
    return bound


def _is_free(port: int) -> bool:
    """Whether no process listens on the port. It is bound for a moment, which does not keep a server from binding it
    that reuses addresses, as all servers of a stack do.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _processes_with(links: Set[str], pids: str) -> Iterator[int]:
    """The processes, of those whose ids match, that have one of these links among their open files."""
    for descriptor in Path("/proc").glob(f"{pids}/fd/*") if links else ():
        try:
            found = str(descriptor.readlink()) in links
        except OSError:  # The process or the descriptor is gone, or belongs to another user.
            continue
        if found:
            yield int(descriptor.parts[2])


def _listeners(port: int) -> Set[str]:
    """The sockets that listen on the port, as the links by which a process' open files show them."""
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

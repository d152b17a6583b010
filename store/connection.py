"""One connection to Cassandra, with the guarantees that the store relies on.

Reads and writes are LOCAL_QUORUM and compare-and-sets LOCAL_SERIAL, everywhere and for every statement: the manifest is
only the truth if nobody reads it at a lower level than it was written.
"""

import random
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cassandra import (
    AuthenticationFailed,
    ConsistencyLevel,
    DriverException,
    UnresolvableContactPoints,
)
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import (
    EXEC_PROFILE_DEFAULT,
    Cluster,
    DefaultConnection,
    ExecutionProfile,
    NoHostAvailable,
    Session,
)
from cassandra.connection import ConnectionException
from cassandra.policies import DCAwareRoundRobinPolicy, ReconnectionPolicy, TokenAwarePolicy

from strandline.errors import Fatal, Retryable

# 5 since Cassandra 4.0, 4 before. Said outright, because the driver's own search begins with versions that no Cassandra
# speaks and warns of each.
_PROTOCOL_VERSIONS = (5, 4)

# The driver sends a request in pieces of 4 KB. Without this the kernel holds all but the first piece back until the
# server acknowledges that one, for which it takes its time: 40 ms for every request of more than 4 KB.
_SOCKET_OPTIONS = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)


# How a server answers that could not look the user up, because too few replicas of `system_auth` answered.
_USER_LOOKUP_FAILED = "Unable to perform authentication"


class LoginRefused(ConnectionException):  # type: ignore[misc] # the driver carries no types
    """A server did not let us in."""


class StoreConnection(DefaultConnection):  # type: ignore[misc] # the driver carries no types
    """A connection that queues what its socket can't take yet, and whose login may be tried again.

    After an `AuthenticationFailed` the driver never tries again to connect to that server, though a password may be
    set right, and replicas of `system_auth` come back. After any other failure to connect it does.

    The driver's own connection refuses requests while the socket's buffer is full, which rows of 1 MB fill at once;
    each refusal costs it one of the connection's request numbers for good. Nothing is refused here: how much may be
    queued is up to the writers.
    """

    @classmethod
    def factory(cls, endpoint: Any, *arguments: Any, **options: Any) -> "StoreConnection":
        try:
            made: StoreConnection = super().factory(endpoint, *arguments, **options)
        except AuthenticationFailed as error:
            raise LoginRefused(str(error), endpoint) from error
        return made

    @property
    def _socket_writable(self) -> bool:
        return True

    @_socket_writable.setter
    def _socket_writable(self, _: bool) -> None:
        """What the driver notes here is only used to refuse."""


_MIN_RECONNECT_S, _MAX_RECONNECT_S = 0.25, 4.0


class BoundedReconnection(ReconnectionPolicy):  # type: ignore[misc] # the driver carries no types
    """Pauses between attempts to reconnect to a server that is down: doubling up to a few seconds, without an end.

    The driver's own default grows to ten minutes and gives up after 64 attempts. Half of each pause is random, so that
    the processes of a fleet do not all come back in the same moment.
    """

    def new_schedule(self) -> Iterator[float]:
        pause = _MIN_RECONNECT_S
        while True:
            yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
            pause = min(2 * pause, _MAX_RECONNECT_S)


class CassandraUnreachable(Retryable):
    """No server answered; one may be starting, or the network be down."""


class CassandraRefused(Fatal):
    """The servers answered, and will not have us as we are: wrong password, certificate, keyspace or data centre."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """How to know the servers, and how they may know us. Without a CA file the system's own authorities count."""

    ca_file: Path | None
    certificate_file: Path | None
    key_file: Path | None
    key_password: str = field(repr=False)
    check_hostname: bool

    def context(self) -> ssl.SSLContext:
        """A fresh context. Servers must prove themselves; `check_hostname` says whether for the very address."""
        context = ssl.create_default_context(cafile=self.ca_file)
        context.check_hostname = self.check_hostname
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file, self.key_password)
        return context


@dataclass(frozen=True, slots=True)
class CassandraConnection:
    """All that it takes to connect. Times are in seconds."""

    contact_points: tuple[tuple[str, int], ...]
    port: int
    local_datacenter: str
    keyspace: str
    credentials: Credentials | None
    tls: Tls | None
    request_timeout: float
    connect_timeout: float

    @property
    def hosts(self) -> str:
        """The contact points as text."""
        return ", ".join(f"{host}:{port}" for host, port in self.contact_points)


def connect(connection: CassandraConnection, *, require_keyspace: bool = True) -> Session:
    """A session; the keyspace must be there, unless `require_keyspace` is false. The caller ends it with
    `session.cluster.shutdown()`.

    The session is in no keyspace: statements name theirs, since prepared ones could otherwise mean another table after
    a reconnection, of which Cassandra warns. Raises `CassandraUnreachable` if no server answers, and `CassandraRefused`
    if they won't serve us.
    """
    for version in _PROTOCOL_VERSIONS:
        try:
            return _connect(connection, version, require_keyspace=require_keyspace)
        except _UnsupportedProtocol:
            continue
    raise CassandraRefused(
        f"Cassandra at {connection.hosts} speaks none of the protocol versions {_PROTOCOL_VERSIONS}",
        remedy="Use Cassandra 4.0 or later",
    )


class _UnsupportedProtocol(Exception):  # noqa: N818 - a signal to try again, never seen outside
    """The server does not know the protocol version."""


def _connect(connection: CassandraConnection, version: int, *, require_keyspace: bool) -> Session:
    try:
        cluster = _cluster(connection, version)
    except UnresolvableContactPoints as error:
        raise CassandraUnreachable(
            f"no host name in {connection.hosts} can be resolved", remedy="Check cassandra.contact_points and the DNS"
        ) from error
    try:
        session = cluster.connect()
        if require_keyspace and connection.keyspace not in cluster.metadata.keyspaces:
            raise CassandraRefused(
                f"Cassandra at {connection.hosts} has no keyspace {connection.keyspace!r}",
                remedy="Check cassandra.keyspace, or set cassandra.keyspace_copies to have it made",
            )
    except BaseException as error:
        datacenters = {host.datacenter for host in cluster.metadata.all_hosts()} - {None}
        cluster.shutdown()
        if isinstance(error, NoHostAvailable | DriverException):
            raise _to_our_error(error, connection, datacenters) from error
        raise
    return session


def _cluster(connection: CassandraConnection, version: int) -> Cluster:
    login = connection.credentials
    profile = ExecutionProfile(
        load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy(connection.local_datacenter)),
        consistency_level=ConsistencyLevel.LOCAL_QUORUM,
        serial_consistency_level=ConsistencyLevel.LOCAL_SERIAL,
        request_timeout=connection.request_timeout,
    )
    return Cluster(
        contact_points=connection.contact_points,
        port=connection.port,
        protocol_version=version,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        auth_provider=PlainTextAuthProvider(login.username, login.password) if login is not None else None,
        ssl_context=connection.tls.context() if connection.tls is not None else None,
        connect_timeout=connection.connect_timeout,
        control_connection_timeout=connection.request_timeout,
        connection_class=StoreConnection,
        reconnection_policy=BoundedReconnection(),
        sockopts=_SOCKET_OPTIONS,
        # Reports of use to a server of another make.
        monitor_reporting_enabled=False,
    )


def _to_our_error(
    error: NoHostAvailable | DriverException, connection: CassandraConnection, datacenters: set[str]
) -> Exception:
    """What the driver's error means to whoever set the connection up."""
    at = f"Cassandra at {connection.hosts}"
    reasons = _reasons(error)
    if any("explicitly set client protocol_version" in str(reason) for reason in reasons):
        return _UnsupportedProtocol()
    refusals = [reason for reason in reasons if isinstance(reason, LoginRefused)]
    if any(_USER_LOOKUP_FAILED not in str(reason) for reason in refusals):
        login = connection.credentials
        what = f"refuses the user {login.username!r}" if login is not None else "wants a user and a password"
        return CassandraRefused(f"{at} {what}", remedy="Check the file that cassandra.credentials_file names")
    if handshakes := [text for text in map(_text, reasons) if text.startswith("[SSL")]:
        return CassandraRefused(
            f"no TLS connection to {at}: {handshakes[0]}", remedy="Check the cassandra.tls settings"
        )
    if datacenters and connection.local_datacenter not in datacenters:
        return CassandraRefused(
            f"{at} has no data centre {connection.local_datacenter!r}, only {', '.join(sorted(datacenters))}",
            remedy="Check cassandra.local_datacenter",
        )
    why = "; ".join(dict.fromkeys(map(_text, reasons)))
    return CassandraUnreachable(f"{at} does not answer: {why}", remedy="Check that it runs and can be reached")


def _reasons(error: NoHostAvailable | DriverException) -> list[Exception]:
    """The errors behind an error: one for each server that was tried, if the driver says so, and itself if not."""
    if isinstance(error, NoHostAvailable) and isinstance(error.errors, Mapping) and error.errors:
        return list(error.errors.values())
    return [error]


def _text(reason: Exception) -> str:
    """What an error says. Of an error while connecting the driver keeps only the text, behind what it tried."""
    return str(reason).rpartition("Last error: ")[2] or type(reason).__name__

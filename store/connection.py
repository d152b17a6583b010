"""A connection to Cassandra, with the guarantees that the store relies on.

All statements read and write with LOCAL_QUORUM, and compare-and-set with LOCAL_SERIAL: the manifest is only
authoritative if it is never read at a lower level than it was written.
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

# 5 since Cassandra 4.0, 4 before. Stated explicitly, because the driver's negotiation starts with versions that no
# Cassandra supports and logs a warning for each.
_PROTOCOL_VERSIONS = (5, 4)

# The driver sends a request in pieces of 4 KB. Without TCP_NODELAY, the kernel holds back all but the first piece until
# the server acknowledges it, which delays every request above 4 KB by 40 ms.
_SOCKET_OPTIONS = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)


# The server's answer if too few replicas of `system_auth` answered to look the user up.
_USER_LOOKUP_FAILED = "Unable to perform authentication"


class LoginRefused(ConnectionException):  # type: ignore[misc] # the driver carries no types
    """A server rejected the login."""


class StoreConnection(DefaultConnection):  # type: ignore[misc] # the driver carries no types
    """A connection that queues what its socket can't take yet, and that may log in again after a failure.

    After an `AuthenticationFailed` the driver never reconnects to that server, although the password may be corrected
    and replicas of `system_auth` may recover. It does reconnect after other errors, so a failed login is raised as one
    of those.

    The driver's own connection rejects requests while the socket's buffer is full, which rows of 1 MB fill at once, and
    loses a request id each time. This one queues them; the writers limit what is in flight.
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
        """Ignore what the driver sets here: it only uses it to reject requests."""
        return True

    @_socket_writable.setter
    def _socket_writable(self, _: bool) -> None:
        """Ignore what the driver sets here: it only uses it to reject requests."""


_MIN_RECONNECT_S, _MAX_RECONNECT_S = 0.25, 4.0


class BoundedReconnection(ReconnectionPolicy):  # type: ignore[misc] # the driver carries no types
    """Delays between attempts to reconnect to a server that is down: doubling up to 4 s, without an end.

    The driver's default grows to ten minutes and gives up after 64 attempts. Half of each delay is random, so that not
    all processes reconnect at the same moment.
    """

    def new_schedule(self) -> Iterator[float]:
        pause = _MIN_RECONNECT_S
        while True:
            yield pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing
            pause = min(2 * pause, _MAX_RECONNECT_S)


class CassandraUnreachable(Retryable):
    """No server answered: it may be starting, or the network may be down."""


class CassandraRefused(Fatal):
    """The servers reject the connection: wrong password, certificate, keyspace or data centre."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """User and password."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tls:
    """How servers and clients are authenticated. Without a CA file, the system's certificate authorities are used."""

    ca_file: Path | None
    certificate_file: Path | None
    key_file: Path | None
    key_password: str = field(repr=False)
    check_hostname: bool

    def context(self) -> ssl.SSLContext:
        """Make a new context. Servers must have a valid certificate; `check_hostname` requires that it names the
        server's address.
        """
        context = ssl.create_default_context(cafile=self.ca_file)
        context.check_hostname = self.check_hostname
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file, self.key_password)
        return context


@dataclass(frozen=True, slots=True)
class CassandraConnection:
    """The parameters of a connection. Times are in seconds."""

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
    """Open a session. The keyspace must exist, unless `require_keyspace` is false. The caller closes the session with
    `session.cluster.shutdown()`.

    The session has no default keyspace: statements name theirs, because after a reconnection a prepared statement could
    refer to another table, which Cassandra warns about. Raises `CassandraUnreachable` if no server answers, and
    `CassandraRefused` if the servers reject the connection.
    """
    for version in _PROTOCOL_VERSIONS:
        try:
            return _connect(connection, version, require_keyspace=require_keyspace)
        except _UnsupportedProtocol:
            continue
    raise CassandraRefused(
        f"Cassandra at {connection.hosts} supports none of the protocol versions {_PROTOCOL_VERSIONS}",
        remedy="Use Cassandra 4.0 or later",
    )


class _UnsupportedProtocol(Exception):  # noqa: N818 - a signal to try again, never seen outside
    """The server does not support the protocol version."""


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
        # Usage reports, for servers of DataStax.
        monitor_reporting_enabled=False,
    )


def _to_our_error(
    error: NoHostAvailable | DriverException, connection: CassandraConnection, datacenters: set[str]
) -> Exception:
    """Translate the driver's error into one that names the cause and the setting to check."""
    at = f"Cassandra at {connection.hosts}"
    reasons = _reasons(error)
    if any("explicitly set client protocol_version" in str(reason) for reason in reasons):
        return _UnsupportedProtocol()
    refusals = [reason for reason in reasons if isinstance(reason, LoginRefused)]
    if any(_USER_LOOKUP_FAILED not in str(reason) for reason in refusals):
        login = connection.credentials
        what = f"refuses the user {login.username!r}" if login is not None else "requires a user and a password"
        return CassandraRefused(f"{at} {what}", remedy="Check the file cassandra.credentials_file")
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
    """Return the errors behind an error: one for each server that was tried, if the driver has them, else the error
    itself.
    """
    if isinstance(error, NoHostAvailable) and isinstance(error.errors, Mapping) and error.errors:
        return list(error.errors.values())
    return [error]


def _text(reason: Exception) -> str:
    """Return the text of an error. If a connection failed, the driver puts the text after a list of what it tried."""
    return str(reason).rpartition("Last error: ")[2] or type(reason).__name__

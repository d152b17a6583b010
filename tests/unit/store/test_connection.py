"""What can be tested of a connection without a server."""

import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import EXEC_PROFILE_DEFAULT, NoHostAvailable

from strandline.errors import Fatal, Retryable
from strandline.node.json_values import json_value
from strandline.store import connection as module
from strandline.store.connection import (
    CassandraConnection,
    CassandraRefused,
    CassandraUnreachable,
    Credentials,
    LoginRefused,
    Tls,
)
from support import pem_samples

pytestmark = pytest.mark.unit


def connection(**changed: object) -> CassandraConnection:
    values: dict[str, object] = {
        "contact_points": (("127.0.0.1", 9042),),
        "port": 9042,
        "local_datacenter": "datacenter1",
        "keyspace": "strandline",
        "credentials": Credentials("me", "my password"),
        "tls": None,
        "request_timeout": 3.0,
        "connect_timeout": 2.0,
    }
    return CassandraConnection(**values | changed)  # type: ignore[arg-type]  # a test's own choice of fields


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener, reserved for the duration of the test."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_the_password_is_in_no_text_of_the_connection() -> None:
    tls = Tls(None, None, None, "sesame", check_hostname=True)
    for text in (repr(connection(tls=tls)), str(json_value(connection(tls=tls)))):
        assert "my password" not in text
        assert "sesame" not in text
        assert "me" in text


def test_an_unreachable_server_is_retryable(closed_port: int) -> None:
    with pytest.raises(
        CassandraUnreachable, match=f"Cassandra at 127.0.0.1:{closed_port} does not answer: Connection refused"
    ):
        module.connect(connection(contact_points=(("127.0.0.1", closed_port),)))
    assert issubclass(CassandraUnreachable, Retryable)
    assert issubclass(CassandraRefused, Fatal)


@pytest.fixture
def one_server() -> Iterator[tuple[socket.socket, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server, server.getsockname()[1]


def answered(server: socket.socket, answer: Callable[[socket.socket], None]) -> threading.Thread:
    """Answer one client, in a thread."""

    def serve() -> None:
        client, _ = server.accept()
        with client:
            answer(client)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def test_a_server_without_tls_is_distinguished_from_no_server(
    one_server: tuple[socket.socket, int], tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text(pem_samples.CERTIFICATE, encoding="utf-8")
    server, port = one_server
    thread = answered(server, lambda client: client.sendall(b"I speak no TLS" + client.recv(1)))
    tls = Tls(ca, None, None, "", check_hostname=True)
    with pytest.raises(CassandraRefused, match=rf"no TLS connection to .*:{port}: .*WRONG_VERSION"):
        module.connect(connection(contact_points=(("127.0.0.1", port),), tls=tls))
    thread.join()


def test_a_server_with_an_untrusted_certificate_is_refused(
    one_server: tuple[socket.socket, int], tmp_path: Path
) -> None:
    both = tmp_path / "both.pem"
    both.write_text(pem_samples.CERTIFICATE + pem_samples.KEY, encoding="utf-8")
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(both)

    def shake_hands(client: socket.socket) -> None:
        with pytest.raises(ssl.SSLError), server_side.wrap_socket(client, server_side=True) as secured:
            secured.recv(1)

    server, port = one_server
    thread = answered(server, shake_hands)
    tls = Tls(None, None, None, "", check_hostname=True)
    with pytest.raises(CassandraRefused, match="CERTIFICATE_VERIFY_FAILED"):
        module.connect(connection(contact_points=(("127.0.0.1", port),), tls=tls))
    thread.join()


def test_servers_must_have_a_trusted_certificate_whether_or_not_their_names_are_checked() -> None:
    for check_hostname in (True, False):
        context = Tls(None, None, None, "", check_hostname=check_hostname).context()
        assert context.check_hostname is check_hostname
        assert context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("error", "datacenters", "kind", "message"),
    [
        (
            NoHostAvailable("", {"a": OSError("x"), "b": LoginRefused("no")}),
            set(),
            CassandraRefused,
            "Cassandra at 127.0.0.1:9042 refuses the user 'me'",
        ),
        (
            NoHostAvailable("", {"a": LoginRefused("code=0100 Unable to perform authentication: Operation timed out")}),
            set(),
            CassandraUnreachable,
            "does not answer: code=0100 Unable to perform authentication: Operation timed out",
        ),
        (
            NoHostAvailable("Unable to connect", ["127.0.0.1"]),
            {"dc2", "dc1"},
            CassandraRefused,
            "has no data centre 'datacenter1', only dc1, dc2",
        ),
        (
            NoHostAvailable("Unable", {"a": OSError("refused"), "b": TimeoutError()}),
            set(),
            CassandraUnreachable,
            "does not answer: refused; TimeoutError",
        ),
        (DriverException("closing"), set(), CassandraUnreachable, "does not answer: closing"),
    ],
)
def test_the_drivers_errors_are_translated(
    error: Exception, datacenters: set[str], kind: type[Exception], message: str
) -> None:
    raised = module._to_our_error(error, connection(), datacenters)
    assert type(raised) is kind
    assert message in str(raised)
    assert "my password" not in str(raised)


def test_a_missing_password_is_distinguished_from_a_wrong_one() -> None:
    error = NoHostAvailable("", {"a": LoginRefused("Remote end requires authentication")})
    raised = module._to_our_error(error, connection(credentials=None), set())
    assert "requires a user and a password" in str(raised)


def test_an_older_server_is_retried_with_the_older_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []

    def too_new(_connection: CassandraConnection, version: int, *, require_keyspace: bool) -> None:
        attempts.append((version, require_keyspace))
        message = f"ProtocolError returned from server while using explicitly set client protocol_version {version}"
        raise module._to_our_error(NoHostAvailable("", {"a": DriverException(message)}), _connection, set())

    monkeypatch.setattr(module, "_connect", too_new)
    with pytest.raises(CassandraRefused, match=r"supports none of the protocol versions \(5, 4\)"):
        module.connect(connection())
    assert attempts == [(5, True), (4, True)]


def test_every_statement_is_a_local_quorum_and_one_serial_level(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        cluster = module._cluster(connection(), 5)
    try:
        profile = cluster.profile_manager.profiles[EXEC_PROFILE_DEFAULT]
        assert profile.consistency_level == ConsistencyLevel.LOCAL_QUORUM
        assert profile.serial_consistency_level == ConsistencyLevel.LOCAL_SERIAL
        assert profile.request_timeout == 3.0
        assert cluster.protocol_version == 5
        assert cluster.connect_timeout == 2.0
    finally:
        cluster.shutdown()
    assert caplog.records == []


def test_a_server_that_is_down_is_retried_within_seconds_and_without_limit() -> None:
    cluster = module._cluster(connection(), 5)
    cluster.shutdown()
    pauses = list(islice(cluster.reconnection_policy.new_schedule(), 1_000))
    assert len(pauses) == 1_000
    assert max(pauses) <= 4.0
    # The processes of a fleet do not reconnect at the same moment.
    assert len(set(pauses)) > 900
    assert min(pauses[10:]) >= 2.0

"""Servers with passwords and TLS: used with nothing but the settings, and health checks with credentials. All in one
file, so that the servers are started once.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cassandra.cluster import Session

from strandline.clock import SystemClock, wait_until
from strandline.node.settings import Settings, load_settings
from strandline.node.settings.clients import (
    cassandra_connection,
    java_kafka_options,
    librdkafka_options,
    spark_properties,
)
from strandline.node.stack import Stack
from strandline.node.stack.cassandra_health import check_cassandra
from strandline.node.stack.errors import Unhealthy
from strandline.node.stack.kafka_health import check_kafka
from strandline.node.stack.options import CassandraClient
from strandline.setup.installation import Installation
from strandline.spark.java_options import FAST_START, JAVA_OPTIONS
from strandline.spark.kafka_source import OffsetRange, read_ranges, source_options
from strandline.spark.session import spark_session
from strandline.store.cassandra.retries import RetryPolicy
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.connection import CassandraRefused, CassandraUnreachable, Credentials, connect
from strandline.store.protocol import StoreRefused, StoreUnavailable
from strandline.store.rows import Lifetime
from support.cassandra_store import COPIES
from support.certificates import Certificates, make_certificates
from support.kafka_part import KafkaFailed, make_topic, produce
from support.secured_stack import CASSANDRA_LOGIN, KAFKA_LOGIN, secured_options
from support.stalling_proxy import StallingProxy
from support.store_contract import PRESENT, cut, fresh_shard, manifest_write, taken

pytestmark = pytest.mark.system

YEAR = 365 * 86_400_000


@dataclass(frozen=True)
class Secured:
    """A settings file for the servers, and certificates of an authority that they do not trust."""

    config: Path
    foreign: Certificates

    def settings(self, **changes: str | Path) -> Settings:
        return load_settings(self.config, {f"STRANDLINE_{name}": str(value) for name, value in changes.items()})


def private_file(path: Path, content: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(content)
    return path


@contextmanager
def ended(session: Session) -> Iterator[None]:
    """A context with a session, which is shut down at the end."""
    try:
        yield
    finally:
        session.cluster.shutdown()


@pytest.fixture(scope="module")
def secured(secured_stack: Stack, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Secured:
    folder = tmp_path_factory.mktemp("settings")
    kafka_login = private_file(folder / "kafka-login", "\n".join(KAFKA_LOGIN))
    cassandra_login = private_file(folder / "cassandra-login", "\n".join(CASSANDRA_LOGIN))
    config = folder / "strandline.toml"
    config.write_text(
        f"""
        [kafka]
        bootstrap_servers = ["{secured_stack.kafka_bootstrap}"]
        security_protocol = "SASL_SSL"
        sasl_mechanism = "PLAIN"
        credentials_file = "{kafka_login}"
        tls_ca_file = "{certificates.ca}"
        tls_certificate_file = "{certificates.client_certificate}"
        tls_key_file = "{certificates.client_key}"
        request_timeout = "10s"

        [cassandra]
        contact_points = ["{secured_stack.cassandra_host}:{secured_stack.cassandra_port}"]
        credentials_file = "{cassandra_login}"
        tls = true
        tls_ca_file = "{certificates.ca}"

        [spark]
        master = "local[1]"
        [spark.properties]
        "{JAVA_OPTIONS}" = "{FAST_START}"
        """
    )
    return Secured(config, make_certificates(folder / "foreign"))


def test_both_clients_connect_to_kafka_with_password_and_certificate(secured: Secured) -> None:
    settings = secured.settings()
    client = librdkafka_options(settings.kafka)
    make_topic(client, "secured")
    assert produce(client, "secured", [b"one", b"two", b"three"]) == [2, 1]
    installation = Installation.load()
    options = source_options(
        str(client["bootstrap.servers"]),
        "secured",
        [OffsetRange(0, 0, 2), OffsetRange(1, 0, 1)],
        max_records_per_task=100,
        client=java_kafka_options(settings.kafka),
    )
    properties = spark_properties(settings.spark)
    with spark_session("secured", properties, jars=installation.spark_jars, java_home=installation.java_home) as spark:
        values = {bytes(row.value) for row in read_ranges(spark, options).collect()}
    assert values == {b"one", b"two", b"three"}


def test_a_wrong_kafka_password_is_refused(secured: Secured, tmp_path: Path) -> None:
    wrong = private_file(tmp_path / "login", f"{KAFKA_LOGIN[0]}\nanother\n")
    settings = secured.settings(KAFKA__CREDENTIALS_FILE=wrong, KAFKA__REQUEST_TIMEOUT="3s")
    with pytest.raises(KafkaFailed, match="could not be made"):
        make_topic(librdkafka_options(settings.kafka), "never", timeout=5)


def test_the_driver_connects_to_cassandra_with_password_over_tls(secured: Secured) -> None:
    session = connect(cassandra_connection(secured.settings().cassandra), require_keyspace=False)
    try:
        assert session.execute("SELECT release_version FROM system.local").one().release_version == "5.0.9"
    finally:
        session.cluster.shutdown()


def test_a_wrong_cassandra_password_is_refused_without_showing_it(secured: Secured, tmp_path: Path) -> None:
    wrong = private_file(tmp_path / "login", f"{CASSANDRA_LOGIN[0]}\nmost-secret\n")
    settings = secured.settings(CASSANDRA__CREDENTIALS_FILE=wrong)
    with pytest.raises(CassandraRefused, match="refuses the user 'cassandra'") as caught:
        connect(cassandra_connection(settings.cassandra), require_keyspace=False)
    assert "most-secret" not in str(caught.value)


def test_a_store_works_again_once_its_user_may_log_in_again(
    secured: Secured, secured_stack: Stack, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver itself never retries after a refused login."""
    clock, administrator = SystemClock(), cassandra_connection(secured.settings().cassandra)
    ours = replace(administrator, credentials=Credentials("shut_out", "a password"))

    def set_login(*, may_log_in: bool) -> None:
        session.execute(f"ALTER ROLE shut_out WITH LOGIN = {str(may_log_in).lower()}")

    def is_refused() -> bool:
        try:
            connect(ours, require_keyspace=False).cluster.shutdown()
        except CassandraRefused:
            return True
        except CassandraUnreachable:
            # Only the first of its connections was accepted: the server has just updated its cached roles.
            return False
        return False

    def refused_attempts() -> int:
        messages = [record.getMessage() for record in caplog.records]
        return sum("attempting to reconnect" in message and "Failed to authenticate" in message for message in messages)

    def works() -> bool:
        try:
            store.touch(owner, 7, 2)
        except StoreUnavailable:
            return False
        return True

    session = connect(administrator, require_keyspace=False)
    session.execute("CREATE ROLE shut_out WITH PASSWORD = 'a password' AND LOGIN = true")
    with ended(session), closing(StallingProxy(secured_stack.cassandra_port)) as cassandra:
        proxied = replace(ours, contact_points=(("127.0.0.1", cassandra.port),), port=cassandra.port)
        retry_policy = RetryPolicy(deadline=0.1)
        with closing(open_cassandra_store(proxied, clock, copies=COPIES, retry_policy=retry_policy)) as store:
            owner = taken(store, fresh_shard())
            set_login(may_log_in=False)
            # The server caches roles for a while.
            assert wait_until(is_refused, timeout=60, clock=clock)
            with cassandra.away():
                assert not works()
            assert wait_until(lambda: refused_attempts() >= 2, timeout=60, clock=clock)
            set_login(may_log_in=True)
            assert wait_until(works, timeout=60, clock=clock)


def test_a_cassandra_with_a_certificate_of_another_authority_is_refused(secured: Secured) -> None:
    settings = secured.settings(CASSANDRA__TLS_CA_FILE=secured.foreign.ca)
    with pytest.raises(CassandraRefused, match="no TLS connection"):
        connect(cassandra_connection(settings.cassandra), require_keyspace=False)


def test_a_default_cassandra_refuses_lifetimes_beyond_january_2038_with_a_remedy(secured: Secured) -> None:
    """Here, because the shared Cassandra of most tests is configured to accept it."""
    connection = cassandra_connection(secured.settings().cassandra)
    with closing(open_cassandra_store(connection, SystemClock(), copies=COPIES)) as store:
        owner = taken(store, fresh_shard())
        with pytest.raises(StoreRefused, match="storage_compatibility_mode"):
            store.commit(owner, manifest_write((cut(5, Lifetime.from_present(PRESENT, 19 * YEAR)),)))


def test_check_config_shows_the_paths_of_secrets_and_no_secret(secured: Secured) -> None:
    strandline = Path(sys.executable).with_name("strandline")
    command = [strandline, "check-config", "--config", secured.config, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = {each["setting"]: each["value"] for each in json.loads(done.stdout)["settings"]}
    assert shown["kafka.credentials_file"].endswith("kafka-login")
    assert KAFKA_LOGIN[1] not in done.stdout + done.stderr
    assert "PRIVATE KEY" not in done.stdout + done.stderr


def test_a_client_with_a_wrong_password_is_refused(secured_stack: Stack, certificates: Certificates) -> None:
    given = secured_options(secured_stack.folder.root, certificates)
    client = replace(given.cassandra_client, login=(CASSANDRA_LOGIN[0], "wrong"))

    with pytest.raises(Unhealthy):
        check_kafka(secured_stack.kafka_bootstrap, {**given.kafka_client, "sasl.password": "wrong"}, 2.0)
    with pytest.raises(Unhealthy, match=r"(?i)credentials|password"):
        check_cassandra(secured_stack.cassandra_host, secured_stack.cassandra_port, client, 5.0)


def test_a_client_without_tls_is_refused(secured_stack: Stack) -> None:
    with pytest.raises(Unhealthy):
        check_kafka(secured_stack.kafka_bootstrap, {}, 2.0)
    with pytest.raises(Unhealthy):
        check_cassandra(
            secured_stack.cassandra_host, secured_stack.cassandra_port, CassandraClient(login=CASSANDRA_LOGIN), 2.0
        )


def test_passwords_are_not_in_state_file_logs_or_command_lines(secured_stack: Stack) -> None:
    contents = [secured_stack.folder.record_file.read_bytes()]
    for server in secured_stack.record.servers:
        assert server.process is not None
        contents.append(Path(f"/proc/{server.process.pid}/cmdline").read_bytes())
        contents.append(Path(server.log).read_bytes())

    assert not any(KAFKA_LOGIN[1].encode() in text for text in contents)

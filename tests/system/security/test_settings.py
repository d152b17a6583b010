"""Servers that ask for passwords and certificates, reached with nothing but the settings."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.node.settings import Settings, load_settings
from strandline.node.settings.clients import (
    cassandra_connection,
    java_kafka_options,
    librdkafka_options,
    spark_properties,
)
from strandline.node.stack import Stack
from strandline.setup.installation import Installation
from strandline.spark.kafka_source import OffsetRange, read_ranges, source_options
from strandline.spark.session import spark_session
from strandline.store.connection import CassandraRefused, connect
from support.certificates import Certificates, make_certificates
from support.kafka_part import KafkaFailed, make_topic, produce
from support.secured_stack import CASSANDRA_LOGIN, KAFKA_LOGIN

pytestmark = pytest.mark.system


@dataclass(frozen=True)
class Secured:
    """The settings file that reaches the servers, and certificates of an authority that they do not know."""

    config: Path
    foreign: Certificates

    def settings(self, **changes: str | Path) -> Settings:
        return load_settings(self.config, {f"STRANDLINE_{name}": str(value) for name, value in changes.items()})


def private_file(path: Path, content: str) -> Path:
    path.touch(mode=0o600)
    path.write_text(content)
    return path


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
        """
    )
    return Secured(config, make_certificates(folder / "foreign"))


def test_kafka_is_reached_with_password_and_certificate_by_both_clients(secured: Secured) -> None:
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


def test_cassandra_is_reached_with_password_over_tls(secured: Secured) -> None:
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


def test_a_cassandra_signed_by_somebody_else_is_refused(secured: Secured) -> None:
    settings = secured.settings(CASSANDRA__TLS_CA_FILE=secured.foreign.ca)
    with pytest.raises(CassandraRefused, match="no TLS connection"):
        connect(cassandra_connection(settings.cassandra), require_keyspace=False)


def test_check_config_shows_where_the_secrets_lie_and_none_of_them(secured: Secured) -> None:
    strandline = Path(sys.executable).with_name("strandline")
    command = [strandline, "check-config", "--config", secured.config, "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    shown = {each["setting"]: each["value"] for each in json.loads(done.stdout)["settings"]}
    assert shown["kafka.credentials_file"].endswith("kafka-login")
    assert KAFKA_LOGIN[1] not in done.stdout + done.stderr
    assert "PRIVATE KEY" not in done.stdout + done.stderr

"""Converting settings to the options of clients."""

import re
import ssl
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from strandline.node.settings import CassandraSettings, KafkaSettings, SparkSettings
from strandline.node.settings.clients import (
    cassandra_connection,
    java_kafka_options,
    librdkafka_options,
    spark_properties,
)
from strandline.node.settings.files import CredentialsFile
from strandline.spark.session import REDACTED
from support import pem_samples

pytestmark = pytest.mark.unit


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


@pytest.fixture
def everything(tmp_path: Path) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=["a:1", "b:2"],
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        credentials_file=write(tmp_path / "credentials", 'me\npa"ss\\word\n'),
        tls_ca_file=write(tmp_path / "ca.pem", pem_samples.CERTIFICATE),
        tls_certificate_file=write(tmp_path / "certificate.pem", pem_samples.CERTIFICATE),
        tls_key_file=write(tmp_path / "key.pem", pem_samples.ENCRYPTED_KEY),
        tls_key_password_file=write(tmp_path / "key_password", pem_samples.KEY_PASSWORD),
        request_timeout="45s",
        client={"fetch.min.bytes": 5, "linger.ms": 0.5},
    )


def test_librdkafka_gets_only_the_necessary_options_by_default() -> None:
    assert librdkafka_options(KafkaSettings()) == {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "PLAINTEXT",
        "socket.timeout.ms": 30_000,
    }


def test_librdkafka_gets_everything_that_is_set(tmp_path: Path, everything: KafkaSettings) -> None:
    assert librdkafka_options(everything) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "socket.timeout.ms": 45_000,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'pa"ss\\word',
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(tmp_path / "certificate.pem"),
        "ssl.key.location": str(tmp_path / "key.pem"),
        "ssl.key.password": pem_samples.KEY_PASSWORD,
        "fetch.min.bytes": 5,
        "linger.ms": "0.5",
    }


def test_librdkafka_itself_accepts_the_options(everything: KafkaSettings) -> None:
    """Creating a client reads every option, the certificate, the key and its password."""
    options = librdkafka_options(everything) | {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    AdminClient(options)
    with pytest.raises(confluent_kafka.KafkaException, match=r"ssl\.key\.location"):
        AdminClient(options | {"ssl.key.password": "wrong"})


def test_java_gets_only_the_necessary_options_by_default_and_reads_committed_records() -> None:
    assert java_kafka_options(KafkaSettings()) == {
        "bootstrap.servers": "localhost:9092",
        "security.protocol": "PLAINTEXT",
        "request.timeout.ms": "30000",
        "isolation.level": "read_committed",
    }


def test_java_gets_everything_that_is_set(tmp_path: Path, everything: KafkaSettings) -> None:
    assert java_kafka_options(everything) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "request.timeout.ms": "45000",
        "isolation.level": "read_committed",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        r'username="me" password="pa\"ss\\word";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": pem_samples.CERTIFICATE,
        "ssl.keystore.key": pem_samples.ENCRYPTED_KEY,
        "ssl.key.password": pem_samples.KEY_PASSWORD,
    }


def test_each_mechanism_has_its_login_module(tmp_path: Path) -> None:
    credentials = write(tmp_path / "credentials", "me\nword\n")
    modules = {
        mechanism: java_kafka_options(
            KafkaSettings(security_protocol="SASL_SSL", sasl_mechanism=mechanism, credentials_file=credentials)
        )["sasl.jaas.config"].split()[0]
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    }
    assert modules == {
        "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
        "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
        "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    }


@given(st.text(min_size=1), st.text(min_size=1))
def test_any_user_and_password_survive_the_quoting(username: str, password: str) -> None:
    login = CredentialsFile(Path("/x"), username, SecretStr(password))
    kafka = KafkaSettings.model_construct(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", credentials_file=login)
    jaas = java_kafka_options(kafka)["sasl.jaas.config"]
    quoted = re.fullmatch(
        r'\S+ required username="((?:[^"\\\r\n]|\\.)*)" password="((?:[^"\\\r\n]|\\.)*)";', jaas, re.DOTALL
    )
    assert quoted is not None
    assert (_as_java_reads(quoted[1]), _as_java_reads(quoted[2])) == (username, password)


def _as_java_reads(quoted: str) -> str:
    return re.sub(r"\\(.)", lambda escape: {"r": "\r", "n": "\n"}.get(escape[1], escape[1]), quoted, flags=re.DOTALL)


def test_spark_gets_its_properties() -> None:
    properties = spark_properties(SparkSettings(driver_memory="2g", properties={"spark.ui.enabled": False}))
    assert properties == {"spark.master": "local[*]", "spark.driver.memory": "2g", "spark.ui.enabled": "false"}


def test_spark_redacts_exactly_the_secrets_in_kafkas_options(everything: KafkaSettings) -> None:
    hidden = {name for name in java_kafka_options(everything) if re.search(REDACTED, f"kafka.{name}")}
    assert hidden == {"sasl.jaas.config", "ssl.keystore.key", "ssl.key.password"}


def test_cassandra_gets_its_servers_with_their_ports_and_times_in_seconds() -> None:
    connection = cassandra_connection(
        CassandraSettings(contact_points=["a", "b:7", "::1", "[::2]:8"], port=9, request_timeout="1500ms")
    )
    assert connection.contact_points == (("a", 9), ("b", 7), ("::1", 9), ("::2", 8))
    assert (connection.port, connection.request_timeout, connection.connect_timeout) == (9, 1.5, 5.0)
    assert (connection.local_datacenter, connection.keyspace) == ("datacenter1", "strandline")
    assert connection.credentials is None
    assert connection.tls is None


def test_cassandra_gets_its_login_and_its_tls_files(tmp_path: Path) -> None:
    settings = CassandraSettings(
        credentials_file=write(tmp_path / "credentials", "me\nmy password\n"),
        tls=True,
        tls_ca_file=write(tmp_path / "ca.pem", pem_samples.CERTIFICATE),
        tls_certificate_file=write(tmp_path / "certificate.pem", pem_samples.CERTIFICATE),
        tls_key_file=write(tmp_path / "key.pem", pem_samples.ENCRYPTED_KEY),
        tls_key_password_file=write(tmp_path / "key_password", pem_samples.KEY_PASSWORD),
        tls_check_hostname=False,
    )
    connection = cassandra_connection(settings)
    assert connection.credentials is not None
    assert (connection.credentials.username, connection.credentials.password) == ("me", "my password")
    assert "my password" not in repr(connection)
    assert pem_samples.KEY_PASSWORD not in repr(connection)
    assert connection.tls is not None
    context = connection.tls.context()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert not context.check_hostname
    assert len(context.get_ca_certs()) == 1

"""The validation of each setting, alone and together with others."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from strandline.node.settings import CassandraSettings, KafkaSettings, Settings, SparkSettings, StackSettings
from strandline.node.settings.findings import names_secret
from strandline.node.settings.http_sections import HttpSettings, QuerySettings
from strandline.node.settings.problems import located
from strandline.node.settings.section import Section
from strandline.node.settings.units import ByteSize, Duration
from support import pem_samples
from support.settings_files import pem_files, refused

pytestmark = pytest.mark.unit


@pytest.fixture
def pem(tmp_path: Path) -> dict[str, Path]:
    return pem_files(tmp_path)


def test_every_setting_has_a_description_that_is_a_sentence() -> None:
    for section in Settings.model_fields:
        for name, field in type(getattr(Settings(), section)).model_fields.items():
            assert field.description is not None, f"{section}.{name}"
            assert field.description.endswith("."), f"{section}.{name}"


def test_every_default_passes_its_own_check() -> None:
    for section in Settings.model_fields:
        defaults = getattr(Settings(), section)
        values = {name: getattr(defaults, name) for name in type(defaults).model_fields}
        assert type(defaults)(**values) == defaults


@pytest.mark.parametrize(
    ("section", "name", "invalid", "what"),
    [
        (KafkaSettings, "bootstrap_servers", [], "names no server"),
        (KafkaSettings, "bootstrap_servers", " , ", "names no server"),
        (KafkaSettings, "bootstrap_servers", 9092, "is not a list of servers"),
        (KafkaSettings, "bootstrap_servers", [9092], "is not a list of servers"),
        (KafkaSettings, "bootstrap_servers", "localhost", "names a server without a port"),
        (KafkaSettings, "bootstrap_servers", "::1", "names a server without a port"),
        (KafkaSettings, "bootstrap_servers", "[::1]", "names a server without a port"),
        (KafkaSettings, "bootstrap_servers", "a:0", "names a server with a port that is not from 1 to 65535"),
        (KafkaSettings, "bootstrap_servers", "a:65536", "names a server with a port that is not from 1 to 65535"),
        (KafkaSettings, "bootstrap_servers", "a:", "names a server with a port that is not from 1 to 65535"),
        (KafkaSettings, "bootstrap_servers", "a b:1", "names a server with an invalid host name or address"),
        (KafkaSettings, "bootstrap_servers", "-:1", "names a server with an invalid host name or address"),
        (KafkaSettings, "bootstrap_servers", "[x]:1", "names a server with an invalid host name or address"),
        (KafkaSettings, "bootstrap_servers", "ssl://a:1", "is not host and port alone"),
        (KafkaSettings, "security_protocol", "TLS", "is not one of the allowed values"),
        (KafkaSettings, "sasl_mechanism", "GSSAPI", "is not one of the allowed values"),
        (KafkaSettings, "request_timeout", "1s", "is below 2s"),
        (KafkaSettings, "request_timeout", "6m", "is above 5m"),
        (KafkaSettings, "client", {"a": [1]}, "is not text, a number, true or false"),
        (KafkaSettings, "client", [], "is not a table"),
        (CassandraSettings, "contact_points", "", "names no server"),
        (CassandraSettings, "port", 0, "is not between 1 and 65535"),
        (CassandraSettings, "port", True, "is not an integer"),
        (CassandraSettings, "port", 9042.0, "is not an integer"),
        (CassandraSettings, "port", "0x10", "is not an integer"),
        (CassandraSettings, "local_datacenter", "", "is not a data centre's name"),
        (CassandraSettings, "local_datacenter", " dc", "is not a data centre's name"),
        (CassandraSettings, "keyspace", "a-b", "is not a keyspace's name"),
        (CassandraSettings, "keyspace", "a" * 49, "is not a keyspace's name"),
        (CassandraSettings, "tls", "perhaps", "is neither true nor false"),
        (CassandraSettings, "tls", 1, "is neither true nor false"),
        (CassandraSettings, "connect_timeout", "0s", "is below 500ms"),
        (HttpSettings, "min_rate", "0.5k", "is not a size"),
        (HttpSettings, "min_rate", "2g", "is above 1g"),
        (QuerySettings, "answer_memory", "63m", "is below 64m"),
        (QuerySettings, "answer_memory", "2t", "is above 1t"),
        (SparkSettings, "master", "", "is not a Spark master"),
        (SparkSettings, "master", "local[0]", "is not a Spark master"),
        (SparkSettings, "master", "spark://", "is not a Spark master"),
        (SparkSettings, "driver_memory", "100m", "is below 512m"),
        (SparkSettings, "properties", {"executor.cores": 1}, 'does not begin with "spark."'),
        (SparkSettings, "properties", {"spark.master": "local"}, "has a setting of its own"),
        (StackSettings, "kafka_port", -1, "is not between 0 and 65535"),
        (StackSettings, "kafka_heap", "255m", "is below 256m"),
        (StackSettings, "cassandra_heap", "511m", "is below 512m"),
        (StackSettings, "start_timeout", "1s", "is below 5s"),
        (StackSettings, "start_timeout", "2h", "is above 1h"),
        (StackSettings, "min_free_disk", "1k", "is below 100m"),
        (StackSettings, "java_home", "/nowhere", "contains no bin/java"),
        (StackSettings, "state_dir", "/dev/null", "is not a folder"),
        (StackSettings, "state_dir", "a\0b", "is not a usable path"),
        (StackSettings, "state_dir", 7, "is not a path"),
    ],
)
def test_invalid_values_are_refused(section: type[Section], name: str, invalid: object, what: str) -> None:
    (finding,) = refused(section, **{name: invalid})
    assert finding[0].split(".")[0] == name
    assert finding[1] == what


def test_limits_are_accepted() -> None:
    kafka = KafkaSettings(bootstrap_servers="a.b-c.d:1,127.0.0.1:65535,[::1]:9092", request_timeout="5m")
    assert kafka.bootstrap_servers == ("a.b-c.d:1", "127.0.0.1:65535", "[::1]:9092")
    cassandra = CassandraSettings(contact_points=["::1", "h", "h:7"], port=1, keyspace="a" * 48, local_datacenter="a b")
    assert cassandra.contact_points == ("::1", "h", "h:7")
    for master in ("local", "local[1]", "local[*]", "local[2,3]", "yarn", "spark://h:7077,i:7077", "k8s://https://h"):
        assert SparkSettings(master=master).master == master
    stack = StackSettings(kafka_port=65535, kafka_heap="256m", cassandra_heap="512m", start_timeout="5s")
    assert (stack.kafka_heap, stack.start_timeout) == (ByteSize.parse("256m"), Duration.parse("5s"))


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("bootstrap.servers", "has a setting of its own"),
        ("security.protocol", "has a setting of its own"),
        ("ssl.ca.location", "has a setting of its own"),
        ("sasl.username", "has a setting of its own"),
        ("isolation.level", "is set by Strandline: every reader is read_committed"),
        ("enable.auto.commit", "is set by Strandline: the manifest, not Kafka, knows what has been stored"),
        ("acks", "is set by Strandline: a sample is acknowledged only once Kafka has it for good"),
        ("sasl.password", "is a secret, and secrets are not allowed here"),
        ("sasl.jaas.config", "is a secret, and secrets are not allowed here"),
        ("ssl.key.pem", "is a secret, and secrets are not allowed here"),
        ("ssl.keystore.password", "is a secret, and secrets are not allowed here"),
        ("sasl.oauthbearer.client.secret", "is a secret, and secrets are not allowed here"),
    ],
)
def test_reserved_properties_are_refused(name: str, what: str) -> None:
    assert refused(KafkaSettings, client={name: "x", "fetch.min.bytes": 1}) == [(f"client.{name}", what)]


def test_a_secret_among_the_properties_is_refused_in_favour_of_its_file() -> None:
    with pytest.raises(ValidationError) as raised:
        KafkaSettings(client={"sasl.password": "x", "ssl.key.password": "y", "some.secret": "z"})
    remedies = [each.finding.remedy for each in located(raised.value)]
    assert "kafka.credentials_file" in remedies[0]
    assert "kafka.tls_key_password_file" in remedies[1]
    assert "kafka.tls_key_file" in remedies[2]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("ssl.key.password", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("spark.ssl.keyPassword", True),
        ("oauth.token", True),
        ("ssl_key", True),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("ssl.key.location", False),
        ("tls_key_password_file", False),
        ("fetch.min.bytes", False),
        ("topic.metadata.refresh.interval.ms", False),
    ],
)
def test_a_secret_property_is_recognised_by_its_name(name: str, *, secret: bool) -> None:
    assert names_secret(name) is secret


def test_sasl_settings_are_needed_with_sasl_and_refused_without(pem: dict[str, Path]) -> None:
    for protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        needed = f"is needed with security_protocol {protocol}"
        assert refused(KafkaSettings, security_protocol=protocol) == [
            ("sasl_mechanism", needed),
            ("credentials_file", needed),
        ]
        assert KafkaSettings(
            security_protocol=protocol, sasl_mechanism="scram-sha-512", credentials_file=pem["credentials"]
        ).uses_sasl
    for protocol in ("PLAINTEXT", "SSL"):
        off = "is given, but security_protocol leaves SASL off"
        assert refused(
            KafkaSettings, security_protocol=protocol, sasl_mechanism="PLAIN", credentials_file=pem["credentials"]
        ) == [("sasl_mechanism", off), ("credentials_file", off)]


def test_secrets_are_in_no_text_of_the_settings_but_can_be_listed(pem: dict[str, Path]) -> None:
    kafka = KafkaSettings(
        security_protocol="SASL_SSL",
        sasl_mechanism="PLAIN",
        credentials_file=pem["credentials"],
        tls_certificate_file=pem["certificate"],
        tls_key_file=pem["encrypted_key"],
        tls_key_password_file=pem["key_password"],
    )
    settings = Settings(kafka=kafka)
    assert set(settings.secrets()) == {"my password", pem_samples.ENCRYPTED_KEY, pem_samples.KEY_PASSWORD}
    for text in (repr(settings), str(settings), repr(settings.model_dump()), repr(kafka.credentials_file)):
        assert all(secret not in text for secret in settings.secrets())
        assert "BEGIN" not in text


def test_pydantic_s_own_error_text_shows_no_value() -> None:
    with pytest.raises(ValidationError) as raised:
        Settings(kafka={"password": "hunter2", "credentials_file": "hunter2", "client": {"sasl.password": "hunter2"}})
    assert "hunter2" not in str(raised.value)
    assert "hunter2" not in repr(raised.value)


def test_the_state_folder_follows_the_xdg_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    in_home = tmp_path / ".local/state/strandline/stack"
    assert StackSettings().state_folder({}) == in_home
    assert StackSettings().state_folder({"XDG_STATE_HOME": ""}) == in_home
    assert StackSettings().state_folder({"XDG_STATE_HOME": "relative"}) == in_home
    assert StackSettings().state_folder({"XDG_STATE_HOME": "/var/s"}) == Path("/var/s/strandline/stack")
    assert StackSettings(state_dir="~/mine").state_folder({"XDG_STATE_HOME": "/var/s"}) == tmp_path / "mine"

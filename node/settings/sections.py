"""The settings: their names, defaults, descriptions and validators. Further sections are in `dataset`,
`shard_sections`, `http_sections` and `job_sections`.

An instance of `Settings` is always valid: each value has been checked alone, with others of its section and with those
of other sections, and the files that it names have been read. `conf/strandline.toml` documents the same settings for
operators, and a test compares the two.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from strandline.node.settings import fields, files, security
from strandline.node.settings.dataset import DatasetSettings
from strandline.node.settings.files import CertificateFile, CredentialsFile, PathSetting, SecretFile
from strandline.node.settings.findings import Finding, validation_error
from strandline.node.settings.http_sections import GatewaySettings, HttpSettings, NodeSettings, QuerySettings
from strandline.node.settings.job_sections import JobsSettings
from strandline.node.settings.properties import kafka_properties, spark_properties
from strandline.node.settings.section import AS_LIST, AS_WRITTEN, Section
from strandline.node.settings.shard_sections import ReplaySettings, ShardSettings, StoreSettings
from strandline.node.settings.units import ByteSize, Duration

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "json"]
SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

Certificates = Annotated[CertificateFile | None, files.certificates, PathSetting(), AS_WRITTEN]
PrivateKey = Annotated[SecretFile | None, files.private_key, PathSetting(), AS_WRITTEN]
KeyPassword = Annotated[SecretFile | None, files.password_file, PathSetting(), AS_WRITTEN]
Credentials = Annotated[CredentialsFile | None, files.credentials_file, PathSetting(), AS_WRITTEN]


class LogSettings(Section):
    """The level and the format of the log."""

    level: Annotated[LogLevel, fields.choice(LogLevel)] = Field(
        default="info", description="The minimum level that is logged."
    )
    format: Annotated[LogFormat, fields.choice(LogFormat)] = Field(
        default="auto", description="Readable lines or JSON; auto means lines on a terminal, and JSON elsewhere."
    )


class KafkaSettings(Section):
    """The addresses of Kafka, and authentication."""

    bootstrap_servers: Annotated[tuple[str, ...], fields.addresses(default_port=False), AS_LIST] = Field(
        default=("localhost:9092",), description="Brokers for the first connection, which return the others."
    )
    security_protocol: Annotated[SecurityProtocol, fields.choice(SecurityProtocol)] = Field(
        default="PLAINTEXT", description="Whether connections use TLS (SSL), a user and password (SASL), or both."
    )
    sasl_mechanism: Annotated[SaslMechanism, fields.choice(SaslMechanism)] = Field(
        default="", description="The SASL mechanism; needed with a SASL protocol."
    )
    credentials_file: Credentials = Field(
        default=None,
        description="A file with the user on line 1 and the password on line 2; needed with a SASL protocol.",
    )
    tls_ca_file: Certificates = Field(
        default=None, description="The CA certificates (PEM) for the brokers' certificates; empty for the system's."
    )
    tls_certificate_file: Certificates = Field(
        default=None, description="The client certificate (PEM), if brokers require one."
    )
    tls_key_file: PrivateKey = Field(default=None, description="The private key (PEM, PKCS#8) of the certificate.")
    tls_key_password_file: KeyPassword = Field(
        default=None, description="A file whose line is the private key's password."
    )
    request_timeout: Annotated[Duration, fields.between(Duration, "2s", "5m"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long to wait for the answer to one request."
    )
    client: Annotated[dict[str, str | int | bool], kafka_properties] = Field(
        default={}, description="Further librdkafka properties, passed on unchanged."
    )

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates with a user and a password."""
        return self.security_protocol.startswith("SASL")

    def findings(self) -> Iterator[Finding]:
        because = ("security_protocol",)
        for name in ("sasl_mechanism", "credentials_file"):
            given = bool(getattr(self, name))
            if self.uses_sasl and not given:
                remedy = "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512" if name == "sasl_mechanism" else "The path of a file"
                yield Finding(f"is needed with security_protocol {self.security_protocol}", remedy, (name,), because)
            elif given and not self.uses_sasl:
                remedy = "Choose security_protocol SASL_SSL (or SASL_PLAINTEXT), or leave this out"
                yield Finding("is given, but security_protocol leaves SASL off", remedy, (name,), because)
        if self.uses_tls:
            yield from security.tls_file_findings(self)
            yield from self._key_findings()
        else:
            remedy = "Choose security_protocol SSL or SASL_SSL, or leave this out"
            yield from security.unused_tls_files(self, "security_protocol", remedy)

    def _key_findings(self) -> Iterator[Finding]:
        key = self.tls_key_file
        kinds = ("-----BEGIN PRIVATE KEY-----", "-----BEGIN ENCRYPTED PRIVATE KEY-----")
        if key is not None and not any(kind in key.content.get_secret_value() for kind in kinds):
            remedy = f"Convert it: `openssl pkcs8 -topk8 -in {key.path} -out NEW-FILE`"
            yield Finding(
                "is not in PKCS#8 format, the only one that Spark's Kafka client reads", remedy, ("tls_key_file",)
            )


class CassandraSettings(Section):
    """The addresses of Cassandra, and authentication."""

    contact_points: Annotated[tuple[str, ...], fields.addresses(default_port=True), AS_LIST] = Field(
        default=("localhost",), description="Servers for the first connection, which return the others."
    )
    port: Annotated[int, fields.integer(1, 65535)] = Field(
        default=9042, description="The port of servers without a port of their own."
    )
    local_datacenter: Annotated[
        str, fields.text_like(r"\S(.*\S)?", "is not a data centre's name", "The name that `nodetool status` shows")
    ] = Field(default="datacenter1", description="The data centre whose servers are used.")
    keyspace: Annotated[
        str,
        fields.text_like(
            "[a-z][a-z0-9_]{0,47}", "is not a keyspace's name", "At most 48 of a-z, 0-9 and _, a letter first"
        ),
    ] = Field(default="strandline", description="The keyspace that holds our tables.")
    keyspace_copies: Annotated[int, fields.integer(0, 9)] = Field(
        default=0,
        description="The replicas of the keyspace if it has to be created; 0 to not create it.",
    )
    credentials_file: Credentials = Field(
        default=None,
        description="A file with the user on line 1 and the password on line 2; empty for no authentication.",
    )
    tls: Annotated[bool, fields.boolean] = Field(default=False, description="Whether connections are encrypted.")
    tls_ca_file: Certificates = Field(
        default=None, description="The CA certificates (PEM) for the servers' certificates; empty for the system's."
    )
    tls_certificate_file: Certificates = Field(
        default=None, description="The client certificate (PEM), if servers require one."
    )
    tls_key_file: PrivateKey = Field(default=None, description="The private key (PEM) of the certificate.")
    tls_key_password_file: KeyPassword = Field(
        default=None, description="A file whose line is the private key's password."
    )
    tls_check_hostname: Annotated[bool, fields.boolean] = Field(
        default=True, description="Whether a server's certificate must contain the address that was connected to."
    )
    request_timeout: Annotated[Duration, fields.between(Duration, "500ms", "10m"), AS_WRITTEN] = Field(
        default=Duration.parse("10s"), description="How long to wait for the answer to one request."
    )
    connect_timeout: Annotated[Duration, fields.between(Duration, "500ms", "5m"), AS_WRITTEN] = Field(
        default=Duration.parse("5s"), description="How long to wait for a connection to one server."
    )

    def findings(self) -> Iterator[Finding]:
        if self.tls:
            yield from security.tls_file_findings(self)
        else:
            yield from security.unused_tls_files(self, "tls", "Set tls to true, or leave this out")


class SparkSettings(Section):
    """The Spark on which replays and bulk jobs run."""

    master: Annotated[
        str,
        fields.text_like(
            r"local|local\[(\*|[1-9][0-9]*)(,[1-9][0-9]*)?\]|yarn|(spark|k8s)://\S+",
            "is not a Spark master",
            'Such as "local[*]", "local[4]", "spark://host:7077", "yarn" or "k8s://https://host:443"',
        ),
    ] = Field(default="local[*]", description="The cluster, or this machine and how many of its cores.")
    driver_memory: Annotated[ByteSize, fields.between(ByteSize, "512m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("1g"), description="The heap of the driver; with a local master, of all of Spark."
    )
    properties: Annotated[dict[str, str], spark_properties] = Field(
        default={}, description="Further Spark properties, passed on unchanged."
    )


class StackSettings(Section):
    """The Kafka and Cassandra that `strandline stack` runs on this machine."""

    state_dir: Annotated[Path | None, files.folder, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="The folder of their data and logs; empty for one in the user's state folder."
    )
    kafka_port: Annotated[int, fields.integer(0, 65535)] = Field(
        default=0, description="Kafka's loopback port; 0 for any free one."
    )
    cassandra_port: Annotated[int, fields.integer(0, 65535)] = Field(
        default=0, description="Cassandra's loopback port; 0 for any free one."
    )
    kafka_heap: Annotated[ByteSize, fields.between(ByteSize, "256m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("512m"), description="Kafka's heap."
    )
    cassandra_heap: Annotated[ByteSize, fields.between(ByteSize, "512m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("1g"), description="Cassandra's heap."
    )
    java_home: Annotated[Path | None, files.java_home, PathSetting(), AS_WRITTEN] = Field(
        default=None, description="The JDK that runs them; empty for the one that set-up found."
    )
    start_timeout: Annotated[Duration, fields.between(Duration, "5s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("60s"), description="How long a server may take until it answers."
    )
    min_free_disk: Annotated[ByteSize, fields.between(ByteSize, "100m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("1g"), description="How much free disk there must be before they are started."
    )

    def findings(self) -> Iterator[Finding]:
        if self.kafka_port == self.cassandra_port != 0:
            remedy = "Another port, or 0 for any free one"
            yield Finding("is the same port as kafka_port", remedy, ("cassandra_port",), ("kafka_port",))

    def state_folder(self, environ: Mapping[str, str]) -> Path:
        """`state_dir`, or a folder in the user's state folder."""
        return self.state_dir or files.user_state(environ) / "stack"


class Settings(BaseSettings):
    """All settings. `Settings()` is the defaults; `load_settings` reads the file and the environment."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    log: LogSettings = LogSettings()
    dataset: DatasetSettings = DatasetSettings()
    node: NodeSettings = NodeSettings()
    shard: ShardSettings = ShardSettings()
    store: StoreSettings = StoreSettings()
    replay: ReplaySettings = ReplaySettings()
    jobs: JobsSettings = JobsSettings()
    http: HttpSettings = HttpSettings()
    query: QuerySettings = QuerySettings()
    gateway: GatewaySettings = GatewaySettings()
    kafka: KafkaSettings = KafkaSettings()
    cassandra: CassandraSettings = CassandraSettings()
    spark: SparkSettings = SparkSettings()
    stack: StackSettings = StackSettings()

    def __init__(self, *sources: PydanticBaseSettingsSource, **sections: Any) -> None:
        """Create settings from sources, of which the first has the highest precedence, or from sections by name. Unlike
        pydantic-settings by default, this does not read the environment.
        """
        super().__init__(_build_sources=(sources or (InitSettingsSource(type(self), sections),), {}))

    def findings(self) -> Iterator[Finding]:
        """Findings about combinations of sections that are valid one by one."""
        timeout = self.kafka.request_timeout
        if self.node.hang_after <= timeout:
            what = f"is not above kafka.request_timeout, {timeout}: a shard that waits for a broker would be killed"
            remedy = f"More than {timeout}, or a shorter kafka.request_timeout"
            yield Finding(what, remedy, ("node", "hang_after"), ("kafka.request_timeout",))

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if found := tuple(self.findings()):
            raise validation_error(found)
        return self

    def secrets(self) -> Iterator[str]:
        """All secrets in the settings' files, for code that masks them in output."""
        for name in type(self).model_fields:
            yield from getattr(self, name).secrets()

"""The options of a stack."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CassandraClient:
    """How a client connects to a Cassandra that requires a password, TLS or a client certificate."""

    login: tuple[str, str] | None = None
    """User and password."""
    ca: Path | None = None
    """The CA of the server's certificate. If it is set, the client uses TLS."""
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class StackOptions:
    """How to run both servers.

    Port 0 means any free port, preferably that of the previous run. `java_home` None means the JDK that set-up found.
    The `extra_` mappings override keys of the generated configuration. If they make a server require authentication,
    the `_client` fields have the credentials for the health checks.
    """

    state_dir: Path
    kafka_port: int = 0
    cassandra_port: int = 0
    kafka_heap: str = "512m"
    cassandra_heap: str = "1g"
    java_home: Path | None = None
    start_timeout: float = 120.0
    min_free_disk: int = 1024 * MIB
    extra_kafka_properties: Mapping[str, str] = field(default_factory=dict)
    extra_cassandra_yaml: Mapping[str, object] = field(default_factory=dict)
    kafka_client: Mapping[str, str] = field(default_factory=dict)
    """librdkafka properties for the health check, such as `sasl.username`."""
    cassandra_client: CassandraClient = CassandraClient()
    optimise: bool = False
    """Let the JVMs use C2 as well. They then take 50% longer to start, which pays off only for benchmarks."""
    record_kafka_classes: bool = False
    """Let Kafka's JVM record the classes that it loads, so that an archive of them can be written."""

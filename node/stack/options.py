"""What a stack is made of, as one value."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CassandraClient:
    """How a client gets into a Cassandra that asks for a password, for TLS, or for a certificate."""

    login: tuple[str, str] | None = None
    """User and password."""
    ca: Path | None = None
    """The authority that signed the server's certificate; with it the client uses TLS."""
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class StackOptions:
    """How to run the pair of servers.

    A port of 0 means any free one, the previous run's where that is still free. `java_home` None means the JDK that
    set-up found. The `extra_` mappings go over the generated configuration, key by key; with them a server may ask
    for passwords, and then the `_client` fields say how the health checks get in.
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
    """Let the JVMs compile to their best code. They then take half as long again to start, which pays off only for
    measurements."""
    record_kafka_classes: bool = False
    """Have Kafka's JVM record which classes it loads, for an archive of them."""

"""The settings of HTTP, queries, the supervisor and the gateway."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from strandline.node.settings import fields, files, security
from strandline.node.settings.files import CertificateFile, PathSetting, SecretFile, TokensFile
from strandline.node.settings.findings import Finding
from strandline.node.settings.section import AS_WRITTEN, Section
from strandline.node.settings.units import ByteSize, Duration

Certificate = Annotated[CertificateFile | None, files.certificates, PathSetting(), AS_WRITTEN]
PrivateKey = Annotated[SecretFile | None, files.private_key, PathSetting(), AS_WRITTEN]
Password = Annotated[SecretFile | None, files.password_file, PathSetting(), AS_WRITTEN]
Tokens = Annotated[TokensFile | None, files.token_file, PathSetting(), AS_WRITTEN]

Partial = Literal["warn", "refuse"]

_LOOPBACK_ONLY = "Name the file of a token, or listen on a loopback address such as 127.0.0.1"


class HttpSettings(Section):
    """Where the node and the gateway listen, and which tokens and certificates they use."""

    node_address: Annotated[str, fields.listen_address] = Field(
        default="127.0.0.1:9460", description="Where the node answers queries; port 0 for any free one."
    )
    gateway_address: Annotated[str, fields.listen_address] = Field(
        default="127.0.0.1:9461", description="Where the gateway receives remote writes; port 0 for any free one."
    )
    tls_certificate_file: Certificate = Field(
        default=None, description="The server's certificate (PEM); with it, both listen with TLS only."
    )
    tls_key_file: PrivateKey = Field(default=None, description="The private key (PEM) of the certificate.")
    tls_key_password_file: Password = Field(
        default=None, description="A file whose line is the private key's password."
    )
    read_token_file: Tokens = Field(
        default=None, description="A file whose lines are tokens for queries, metrics and the page."
    )
    write_token_file: Tokens = Field(default=None, description="A file whose lines are tokens for remote writes.")
    admin_token_file: Tokens = Field(default=None, description="A file whose lines are tokens for admin verbs.")
    request_timeout: Annotated[Duration, fields.between(Duration, "1s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("1m"), description="How long a client may take to send a request."
    )
    connections: Annotated[int, fields.integer(1, 100_000)] = Field(
        default=1000, description="The maximum number of concurrent connections."
    )

    min_rate: Annotated[ByteSize, fields.between(ByteSize, "1k", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("4k"), description="The minimum bytes per second that a client must send or receive."
    )

    @property
    def tls_ca_file(self) -> CertificateFile | None:
        """None: clients authenticate with tokens, not with certificates."""
        return None

    def findings(self) -> Iterator[Finding]:
        yield from security.tls_file_findings(self)
        for address, token in (("node_address", "read_token_file"), ("gateway_address", "write_token_file")):
            if not fields.is_loopback(getattr(self, address)) and getattr(self, token) is None:
                yield Finding(f"is needed if {address} is not a loopback one", _LOOPBACK_ONLY, (token,), (address,))
        by_file = [{one.get_secret_value() for one in file.tokens} for file in self._token_files() if file is not None]
        if len(set().union(*by_file)) < sum(map(len, by_file)):
            remedy = "Different tokens in each file: permission to read must not include permission to write"
            yield Finding("contains a token that another setting's file also contains", remedy, ("admin_token_file",))

    def _token_files(self) -> tuple[TokensFile | None, ...]:
        return self.read_token_file, self.write_token_file, self.admin_token_file


class NodeSettings(Section):
    """Which shards a node runs, and how it restarts them."""

    shards: Annotated[str, fields.shard_list] = Field(
        default="all", description='The partitions that this node serves: all, or numbers such as "0-3, 7".'
    )
    restarts: Annotated[int, fields.integer(0, 1000)] = Field(
        default=5, description="How often a shard or worker that failed is restarted within restart_window."
    )
    restart_window: Annotated[Duration, fields.between(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("10m"), description="The time in which restarts are counted."
    )
    hang_after: Annotated[Duration, fields.between(Duration, "5s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("1m"), description="A process that hangs for this long is killed and restarted."
    )
    stop_timeout: Annotated[Duration, fields.between(Duration, "1s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long all processes may take to end before they are killed."
    )


class QuerySettings(Section):
    """The limits of queries."""

    lookback: Annotated[Duration, fields.between(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("5m"), description="The maximum age of a sample that an instant vector uses."
    )
    timeout: Annotated[Duration, fields.between(Duration, "100ms", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long a query may take, until its client has the whole answer."
    )
    concurrency: Annotated[int, fields.integer(1, 1000)] = Field(
        default=8, description="How many queries run at a time; others wait."
    )
    max_series: Annotated[int, fields.integer(1, 100_000_000)] = Field(
        default=200_000, description="How many series a query may read samples of."
    )
    max_samples: Annotated[int, fields.integer(1, 10**10)] = Field(
        default=50_000_000, description="How many samples or values a query may hold in memory at once."
    )
    max_points: Annotated[int, fields.integer(1, 10**6)] = Field(
        default=11_000, description="How many points a series may have in a range query's answer."
    )
    max_names: Annotated[int, fields.integer(1, 100_000_000)] = Field(
        default=1_000_000, description="How many series, label names or values an answer may list."
    )
    partial: Annotated[Partial, fields.choice(Partial)] = Field(
        default="warn", description="PromQL queries while a shard can't answer: warn, or refuse (503)."
    )
    log_slower_than: Annotated[Duration, fields.between(Duration, "1ms", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("10s"), description="Queries that take longer are logged with their cost."
    )
    answer_memory: Annotated[ByteSize, fields.between(ByteSize, "64m", "1t"), AS_WRITTEN] = Field(
        default=ByteSize.parse("1g"),
        description="The memory for answers until clients have received them; beyond it, queries are refused.",
    )
    result_cache: Annotated[ByteSize, fields.between(ByteSize, "0k", "64g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("64m"),
        description="How many bytes of results of range queries each shard keeps; 0k keeps none.",
    )


class GatewaySettings(Section):
    """The limits of the gateway."""

    max_body: Annotated[ByteSize, fields.between(ByteSize, "1k", "256m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("16m"), description="The maximum size of a request as sent (compressed)."
    )
    max_unpacked: Annotated[ByteSize, fields.between(ByteSize, "1k", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("32m"), description="The maximum size of an uncompressed request."
    )
    max_series: Annotated[int, fields.integer(1, 10_000_000)] = Field(
        default=100_000, description="The maximum number of series in a request."
    )
    max_in_flight: Annotated[ByteSize, fields.between(ByteSize, "1m", "64g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("256m"), description="The maximum bytes in flight; beyond it, requests wait."
    )
    max_record: Annotated[ByteSize, fields.between(ByteSize, "10k", "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("800k"), description="The maximum size of an uncompressed record for Kafka."
    )
    timeout: Annotated[Duration, fields.between(Duration, "1s", "10m"), AS_WRITTEN] = Field(
        default=Duration.parse("20s"), description="How long Kafka may take to acknowledge a request."
    )
    partitions_refresh: Annotated[Duration, fields.between(Duration, "1s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How often the number of the topic's partitions is refreshed."
    )

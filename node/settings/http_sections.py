"""How the node is reached and what it may be asked: HTTP, queries, the supervisor and the gateway."""

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
    """Where the node and the gateway listen, and who may ask them what."""

    node_address: Annotated[str, fields.listen_address] = Field(
        default="127.0.0.1:9460", description="Where the node answers queries; port 0 for any free one."
    )
    gateway_address: Annotated[str, fields.listen_address] = Field(
        default="127.0.0.1:9461", description="Where the gateway takes remote writes; port 0 for any free one."
    )
    tls_certificate_file: Certificate = Field(
        default=None, description="The certificate (PEM) to show; with it both listen with TLS only."
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
    connections: Annotated[int, fields.whole_number(1, 100_000)] = Field(
        default=1000, description="How many connections there may be at a time."
    )

    min_rate: Annotated[ByteSize, fields.between(ByteSize, "1k", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("4k"), description="Bytes a second that a client has to send, or to take, at least."
    )

    @property
    def tls_ca_file(self) -> CertificateFile | None:
        """None: clients prove themselves by token, not by certificate."""
        return None

    def findings(self) -> Iterator[Finding]:
        yield from security.tls_file_findings(self)
        for address, token in (("node_address", "read_token_file"), ("gateway_address", "write_token_file")):
            if not fields.is_loopback(getattr(self, address)) and getattr(self, token) is None:
                yield Finding(f"is needed where {address} is not a loopback one", _LOOPBACK_ONLY, (token,), (address,))
        by_file = [{one.get_secret_value() for one in file.tokens} for file in self._token_files() if file is not None]
        if len(set().union(*by_file)) < sum(map(len, by_file)):
            remedy = "Another token in each file: who may read must not be able to write by that"
            yield Finding("holds a token that another setting names, too", remedy, ("admin_token_file",))

    def _token_files(self) -> tuple[TokensFile | None, ...]:
        return self.read_token_file, self.write_token_file, self.admin_token_file


class NodeSettings(Section):
    """Which shards a node runs, and what becomes of one that ends."""

    shards: Annotated[str, fields.shard_list] = Field(
        default="all", description='The partitions that this node serves: all, or numbers such as "0-3, 7".'
    )
    restarts: Annotated[int, fields.whole_number(0, 1000)] = Field(
        default=5, description="How often a shard or worker that failed is restarted within restart_window."
    )
    restart_window: Annotated[Duration, fields.between(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("10m"), description="The time in which restarts are counted."
    )
    hang_after: Annotated[Duration, fields.between(Duration, "5s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("1m"), description="A process that does nothing for so long is killed and restarted."
    )
    stop_timeout: Annotated[Duration, fields.between(Duration, "1s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long all processes may take to end before they are killed."
    )


class QuerySettings(Section):
    """What one query may cost."""

    lookback: Annotated[Duration, fields.between(Duration, "1s", "1d"), AS_WRITTEN] = Field(
        default=Duration.parse("5m"), description="How old a sample may be that counts for a later time."
    )
    timeout: Annotated[Duration, fields.between(Duration, "100ms", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How long a query may take, until its client has the whole answer."
    )
    concurrency: Annotated[int, fields.whole_number(1, 1000)] = Field(
        default=8, description="How many queries are worked on at a time; others wait."
    )
    max_series: Annotated[int, fields.whole_number(1, 100_000_000)] = Field(
        default=200_000, description="How many series a query may read samples of."
    )
    max_samples: Annotated[int, fields.whole_number(1, 10**10)] = Field(
        default=50_000_000, description="How many samples or values a query may hold in memory at once."
    )
    max_points: Annotated[int, fields.whole_number(1, 10**6)] = Field(
        default=11_000, description="How many points a series may have in a range query's answer."
    )
    max_names: Annotated[int, fields.whole_number(1, 100_000_000)] = Field(
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
        description="How much memory answers may take, until clients have taken them; beyond it queries are refused.",
    )
    result_cache: Annotated[ByteSize, fields.between(ByteSize, "0k", "64g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("64m"),
        description="How many bytes of results of range queries each shard keeps; 0k keeps none.",
    )


class GatewaySettings(Section):
    """What the gateway takes."""

    max_body: Annotated[ByteSize, fields.between(ByteSize, "1k", "256m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("16m"), description="How large a request may be as it is sent."
    )
    max_unpacked: Annotated[ByteSize, fields.between(ByteSize, "1k", "1g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("32m"), description="How large a request may be once it is unpacked."
    )
    max_series: Annotated[int, fields.whole_number(1, 10_000_000)] = Field(
        default=100_000, description="How many series a request may hold."
    )
    max_in_flight: Annotated[ByteSize, fields.between(ByteSize, "1m", "64g"), AS_WRITTEN] = Field(
        default=ByteSize.parse("256m"), description="How much may arrive, or wait for Kafka; beyond it requests wait."
    )
    max_record: Annotated[ByteSize, fields.between(ByteSize, "10k", "64m"), AS_WRITTEN] = Field(
        default=ByteSize.parse("800k"), description="How large a record for Kafka may be before it is packed."
    )
    timeout: Annotated[Duration, fields.between(Duration, "1s", "10m"), AS_WRITTEN] = Field(
        default=Duration.parse("20s"), description="How long Kafka may take to acknowledge a request."
    )
    partitions_refresh: Annotated[Duration, fields.between(Duration, "1s", "1h"), AS_WRITTEN] = Field(
        default=Duration.parse("30s"), description="How often the topic's partitions are counted again."
    )

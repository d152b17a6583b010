"""Series for bulk jobs, asked of a node over HTTP."""

from contextlib import closing
from dataclasses import dataclass, field

from strandline.errors import Retryable
from strandline.jobs.sending.series import SeriesPage, SeriesQuery
from strandline.node.client.addresses import BadAddress, NodeAddress, address_of, parse_url
from strandline.node.client.node_client import NodeClient
from strandline.node.client.trust import Trust
from strandline.node.settings.sections import Settings

_TIMEOUT_S = 120.0


class AnswerIncomplete(Retryable):
    """The node's answer may lack something."""


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """Where a node is, and how to ask it. It may travel to other processes; the token is never shown."""

    address: NodeAddress
    token: str | None = field(default=None, repr=False)
    trust: Trust = field(default_factory=Trust)

    def client(self) -> NodeClient:
        """A client. Close it."""
        return NodeClient(self.address, token=self.token, trust=self.trust, timeout_s=_TIMEOUT_S)


def node_access(settings: Settings) -> NodeAccess:
    """The node that bulk jobs ask: `jobs.node_url`, or that of the settings."""
    http, tokens = settings.http, settings.http.read_token_file
    token = tokens.tokens[0].get_secret_value() if tokens is not None else None
    if settings.jobs.node_url:
        return NodeAccess(parse_url(settings.jobs.node_url), token)
    certificate = http.tls_certificate_file
    trust = Trust.in_certificate(certificate.content) if certificate is not None else Trust()
    return NodeAccess(address_of(http), token, trust)


@dataclass(frozen=True, slots=True)
class NodeSeries:
    """The `SeriesSource` of a node that serves all partitions; None if its address is not known."""

    access: NodeAccess | None

    def page(self, query: SeriesQuery) -> SeriesPage:
        """A page. Raises `AnswerIncomplete` for an answer with a warning."""
        if self.access is None:
            raise BadAddress("http.node_address has the port 0, so no node can be asked", remedy="Set jobs.node_url")
        with closing(self.access.client()) as client:
            answer = client.series_page(query)
        require_whole(answer.warnings)
        return SeriesPage(answer.items, answer.more)


def require_whole(warnings: tuple[str, ...]) -> None:
    """Raises `AnswerIncomplete` if an answer had a warning."""
    if warnings:
        raise AnswerIncomplete(
            f"the node's answer may lack something: {'; '.join(warnings)}",
            remedy="It is tried again by itself; the node's status page shows how its shards are",
        )

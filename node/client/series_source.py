"""Reads the series for bulk jobs from nodes over HTTP."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from strandline.errors import ExitCode, Retryable
from strandline.jobs.sending.series import SeriesPage, SeriesQuery, merge_pages
from strandline.node.client.addresses import BadAddress, NodeAddress, address_of, parse_url
from strandline.node.client.node_client import NodeClient
from strandline.node.client.tls_verification import TlsVerification
from strandline.node.query.coverage import ranges
from strandline.node.settings.sections import Settings

_TIMEOUT_S = 120.0


class AnswerIncomplete(Retryable):
    """The node's answer may be incomplete."""

    exit_code = ExitCode.NOT_READY


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """The address of a node, with token and TLS verification. It can be pickled for other processes. `repr` omits the
    token.
    """

    address: NodeAddress
    token: str | None = field(default=None, repr=False)
    verification: TlsVerification = field(default_factory=TlsVerification)

    def client(self, timeout_s: float = _TIMEOUT_S) -> NodeClient:
        """A client, to be closed by the caller."""
        return NodeClient(self.address, token=self.token, verification=self.verification, timeout_s=timeout_s)


def nodes_of(settings: Settings) -> tuple[NodeAccess, ...]:
    """The nodes that bulk jobs query: `jobs.node_urls`, or the node of the settings; none if its port is unknown."""
    http, tokens = settings.http, settings.http.read_token_file
    token = tokens.tokens[0].get_secret_value() if tokens is not None else None
    if settings.jobs.node_urls:
        return tuple(NodeAccess(parse_url(url), token) for url in settings.jobs.node_urls)
    certificate = http.tls_certificate_file
    verification = TlsVerification.pinned_to(certificate.content) if certificate is not None else TlsVerification()
    try:
        return (NodeAccess(address_of(http), token, verification),)
    except BadAddress:
        # The port is only known once the node has started. Other kinds of jobs need no node.
        return ()


@dataclass(frozen=True, slots=True)
class NodeSeries:
    """The `SeriesSource` over nodes that together serve all partitions."""

    nodes: tuple[NodeAccess, ...]

    def page(self, query: SeriesQuery) -> SeriesPage:
        """A page. Raises `AnswerIncomplete` for an answer with a warning, and if no node serves some partition."""
        require_nodes(self.nodes)
        pages: list[SeriesPage] = []
        unserved: frozenset[int] | None = None
        for node in self.nodes:
            with closing(node.client()) as client:
                answer = client.series_page(query)
            require_complete(answer.warnings)
            pages.append(answer.page)
            unserved = answer.unserved if unserved is None else unserved & answer.unserved
        if unserved:
            raise AnswerIncomplete(
                f"no node of {', '.join(node.address.url for node in self.nodes)} serves the partitions "
                f"{ranges(sorted(unserved))}",
                remedy="List all nodes of the dataset in jobs.node_urls; this is retried automatically",
            )
        return merge_pages(pages)


def require_nodes(nodes: Sequence[NodeAccess]) -> None:
    """Raises `BadAddress` if no node is known."""
    if not nodes:
        raise BadAddress("http.node_address has port 0, so the node's address is unknown", remedy="Set jobs.node_urls")


def require_complete(warnings: Sequence[str]) -> None:
    """Raises `AnswerIncomplete` if an answer had a warning."""
    if warnings:
        raise AnswerIncomplete(
            f"the node's answer may be incomplete: {'; '.join(warnings)}",
            remedy="This is retried automatically; the node's status page shows the state of its shards",
        )

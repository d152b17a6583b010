"""Sends requests to a node over one HTTP connection."""

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from strandline.jobs.sending.series import SeriesQuery
from strandline.node.client import answers
from strandline.node.client.addresses import NodeAddress
from strandline.node.client.answers import Labels, ListResult, NodePage, SampledSeries, SelectorSize
from strandline.node.client.envelope import Envelope, Reply, parse_reply
from strandline.node.client.errors import NodeUnreachable, NodeUntrusted, NotANode, QueryWrong, QuestionWrong
from strandline.node.client.tls_verification import TlsVerification

DEFAULT_TIMEOUT_S = 60.0
# Longer requests are sent as a form, because servers and proxies limit the length of URLs.
_MAX_URL_LENGTH = 2000
# A larger answer is useless in a terminal, or not from a node.
_MAX_RESPONSE_BYTES = 1 << 30
_UNREACHABLE_REMEDY = "Start it with `strandline node`, or give its address with --url"


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """A range of times in milliseconds. Either end may be open."""

    start: int | None = None
    end: int | None = None

    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of a request."""
        given = (("start", self.start), ("end", self.end))
        return [(name, seconds(moment)) for name, moment in given if moment is not None]


@dataclass(frozen=True, slots=True)
class Steps:
    """Start, end and step of a range query, in milliseconds."""

    start: int
    end: int
    step: int


class NodeClient:
    """A client of one node. Not thread-safe. For all limits, 0 means no limit."""

    def __init__(
        self,
        address: NodeAddress,
        *,
        token: str | None = None,
        verification: TlsVerification | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self.address = address
        self._token, self._verification, self._timeout_s = token, verification or TlsVerification(), timeout_s
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        """Close the connection. The next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def series(self, selectors: tuple[str, ...], within: TimeBounds, limit: int) -> ListResult[Labels]:
        """The series that match any of the selectors."""
        return answers.label_sets(self._request("/api/v1/series", _list_parameters(selectors, within, limit)), limit)

    def label_names(self, selectors: tuple[str, ...], within: TimeBounds, limit: int) -> ListResult[str]:
        """The label names of the series that match any of the selectors; of all series if there are none."""
        return answers.texts(self._request("/api/v1/labels", _list_parameters(selectors, within, limit)), limit)

    def label_values(self, label: str, selectors: tuple[str, ...], within: TimeBounds, limit: int) -> ListResult[str]:
        """The values of a label in the series that match any of the selectors; in all series if there are none."""
        path = f"/api/v1/label/{quote(label, safe='')}/values"
        # The API does not accept forms here.
        return answers.texts(self._request(path, _list_parameters(selectors, within, limit), form=False), limit)

    def series_page(self, query: SeriesQuery) -> NodePage:
        """A page of series in the order of their key hashes."""
        parameters = [
            *_list_parameters((query.selector,), TimeBounds(query.window.first, query.window.last), 0),
            ("first", f"{query.first:032x}"),
            ("last", f"{query.last:032x}"),
            ("limit", str(query.limit)),
            *([("newest", "true")] if query.newest else []),
        ]
        return answers.series_page(self._request("/api/v1/strandline/series", parameters))

    def count_series(self, selector: str, within: TimeBounds) -> ListResult[int]:
        """The number of series; an estimate if there is a warning about it."""
        parameters = [*_list_parameters((selector,), within, 0), ("limit", "1")]
        return answers.series_count(self._request("/api/v1/strandline/cardinality", parameters))

    def selector_size(self, selector: str, within: TimeBounds) -> ListResult[SelectorSize]:
        """The number of series, and an estimate of their samples, in a range of times."""
        parameters = [*_list_parameters((selector,), within, 0), ("limit", "1"), ("samples", "true")]
        return answers.selector_size(self._request("/api/v1/strandline/cardinality", parameters))

    def query(self, query: str, time: int, limit: int) -> ListResult[SampledSeries]:
        """The result of an instant query. Raises `QueryWrong` if it is invalid."""
        parameters = [("query", query), ("time", seconds(time)), *_limit_parameter(limit)]
        return self._query("/api/v1/query", query, parameters, limit)

    def query_range(self, query: str, steps: Steps, limit: int) -> ListResult[SampledSeries]:
        """The result of a range query. Raises `QueryWrong` if it is invalid."""
        parameters = [("query", query), ("start", seconds(steps.start)), ("end", seconds(steps.end))]
        parameters += [("step", seconds(steps.step)), *_limit_parameter(limit)]
        return self._query("/api/v1/query_range", query, parameters, limit)

    def _query(self, path: str, query: str, parameters: list[tuple[str, str]], limit: int) -> ListResult[SampledSeries]:
        try:
            return answers.samples(self._request(path, parameters), limit)
        except QuestionWrong as error:
            raise QueryWrong(error.message, query) from error

    def shard_lags(self) -> list[answers.ShardLag]:
        """The lags of the node's shards."""
        return answers.shard_lags(self._request("/api/v1/strandline/shards", []))

    def _request(self, path: str, parameters: list[tuple[str, str]], *, form: bool = True) -> Envelope:
        return parse_reply(self._reply(path, urlencode(parameters), form=form))

    def _reply(self, path: str, parameters: str, *, form: bool) -> Reply:
        headers = {"Accept": "application/json"}
        if form and len(parameters) > _MAX_URL_LENGTH:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            return self.exchange("POST", path, parameters.encode("ascii"), headers)
        return self.exchange("GET", f"{path}?{parameters}" if parameters else path, None, headers)

    def exchange(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """Send a request, and return the response with any status. Raises what keeps it from being answered."""
        url, target = self.address.url, self.address.prefix + path
        sent = {**headers, "User-Agent": "strandline"}
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        connection = self._connected()
        try:
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            answer = response.read(_MAX_RESPONSE_BYTES + 1)
            if response.length and len(answer) <= _MAX_RESPONSE_BYTES:
                raise http.client.IncompleteRead(answer, response.length)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise self._failure(error) from error
        if len(answer) > _MAX_RESPONSE_BYTES:
            self.close()
            raise NotANode(f"{url} answered with more than {_MAX_RESPONSE_BYTES:,} bytes", remedy="Query less data")
        return Reply(url, response.status, response.headers.get("Content-Type", ""), answer)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> http.client.HTTPConnection:
        address, timeout = self.address, self._timeout_s
        if not address.tls:
            plain = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
            return self._open(plain)
        context = self._verification.context()
        secure = http.client.HTTPSConnection(address.host, address.port, timeout=timeout, context=context)
        self._open(secure)
        certificate = secure.sock.getpeercert(binary_form=True) if isinstance(secure.sock, ssl.SSLSocket) else None
        try:
            self._verification.check(certificate, address.url)
        except NodeUntrusted:
            secure.close()
            raise
        return secure

    def _open(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            connection.close()
            raise self._failure(error) from error
        return connection

    def _failure(self, error: Exception) -> NodeUnreachable | NodeUntrusted:
        url = self.address.url
        match error:
            case ssl.SSLCertVerificationError():
                return NodeUntrusted(
                    f"the certificate of {url} can't be verified: {error.verify_message.rstrip('.')}",
                    remedy="Give the certificate authority with --ca-file, and use the host name in the certificate",
                )
            case ssl.SSLError():
                return NodeUntrusted(
                    f"the TLS handshake with {url} failed: {error.reason or error}",
                    remedy="Use http:// if it listens without TLS",
                )
            case TimeoutError():
                return NodeUnreachable(
                    f"{url} did not answer within {self._timeout_s:g} s", remedy="Query less data, or try again later"
                )
            case http.client.HTTPException():
                hint = "" if self.address.tls else "; use https:// if it listens with TLS"
                return NodeUnreachable(
                    f"{url} closed the connection before the end of its answer ({type(error).__name__}){hint}",
                    remedy=_UNREACHABLE_REMEDY,
                )
            case _:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                return NodeUnreachable(f"no node answers at {url}: {reason}", remedy=_UNREACHABLE_REMEDY)


def seconds(milliseconds: int) -> str:
    """A time or duration as a parameter of the API, with milliseconds."""
    seconds_, rest = divmod(abs(milliseconds), 1000)
    return f"{'-' if milliseconds < 0 else ''}{seconds_}" + (f".{rest:03}" if rest else "")


def _list_parameters(selectors: tuple[str, ...], within: TimeBounds, limit: int) -> list[tuple[str, str]]:
    return [*(("match[]", selector) for selector in selectors), *within.parameters(), *_limit_parameter(limit)]


def _limit_parameter(limit: int) -> list[tuple[str, str]]:
    # One more than the limit shows whether there are more, even without a warning.
    return [("limit", str(limit + 1))] if limit else []

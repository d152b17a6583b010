"""Questions to a node over HTTP, one connection for all of them."""

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
# A longer question goes as a form: servers and proxies bound the length of a URL.
_MAX_URL_LENGTH = 2000
# An answer that is larger is not one to look at in a terminal, or no answer of a node at all.
_MAX_RESPONSE_BYTES = 1 << 30
_UNREACHABLE_REMEDY = "Is it running? Start it by `strandline node`, or say where it is by --url"


@dataclass(frozen=True, slots=True)
class TimeBounds:
    """A range of times in milliseconds, either end of which may be open."""

    start: int | None = None
    end: int | None = None

    def parameters(self) -> list[tuple[str, str]]:
        """As the API wants them."""
        given = (("start", self.start), ("end", self.end))
        return [(name, seconds(moment)) for name, moment in given if moment is not None]


@dataclass(frozen=True, slots=True)
class Steps:
    """From a moment to another one by steps; all in milliseconds."""

    start: int
    end: int
    step: int


class NodeClient:
    """Asks one node. Not for several threads."""

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
        """Leave. Asking again connects again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def series(self, selectors: tuple[str, ...], within: TimeBounds, limit: int) -> ListResult[Labels]:
        """The series that any of the selectors matches; 0 is no limit, here as elsewhere."""
        return answers.label_sets(self._request("/api/v1/series", _list_parameters(selectors, within, limit)), limit)

    def label_names(self, selectors: tuple[str, ...], within: TimeBounds, limit: int) -> ListResult[str]:
        """The names of labels, of all series if there is no selector."""
        return answers.texts(self._request("/api/v1/labels", _list_parameters(selectors, within, limit)), limit)

    def label_values(self, label: str, selectors: tuple[str, ...], within: TimeBounds, limit: int) -> ListResult[str]:
        """The values of a label."""
        path = f"/api/v1/label/{quote(label, safe='')}/values"
        # The API has no form for this one.
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
        """How many series there are, or about how many, if the warnings say so."""
        parameters = [*_list_parameters((selector,), within, 0), ("limit", "1")]
        return answers.series_count(self._request("/api/v1/strandline/cardinality", parameters))

    def selector_size(self, selector: str, within: TimeBounds) -> ListResult[SelectorSize]:
        """How many series there are, and about how many samples they have in a time."""
        parameters = [*_list_parameters((selector,), within, 0), ("limit", "1"), ("samples", "true")]
        return answers.selector_size(self._request("/api/v1/strandline/cardinality", parameters))

    def query(self, query: str, time: int, limit: int) -> ListResult[SampledSeries]:
        """What a query gives at a moment. Raises `QueryWrong` if it is none."""
        parameters = [("query", query), ("time", seconds(time)), *_limit_parameter(limit)]
        return self._query("/api/v1/query", query, parameters, limit)

    def query_range(self, query: str, steps: Steps, limit: int) -> ListResult[SampledSeries]:
        """What a query gives at each step. Raises `QueryWrong` if it is none."""
        parameters = [("query", query), ("start", seconds(steps.start)), ("end", seconds(steps.end))]
        parameters += [("step", seconds(steps.step)), *_limit_parameter(limit)]
        return self._query("/api/v1/query_range", query, parameters, limit)

    def _query(self, path: str, query: str, parameters: list[tuple[str, str]], limit: int) -> ListResult[SampledSeries]:
        try:
            return answers.samples(self._request(path, parameters), limit)
        except QuestionWrong as error:
            raise QueryWrong(error.message, query) from error

    def shard_lags(self) -> list[answers.ShardLag]:
        """How far each of the node's shards is behind."""
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
        """What a node answers to a request, whatever that is."""
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
            raise NotANode(f"{url} answered with more than {_MAX_RESPONSE_BYTES:,} bytes", remedy="Ask for less")
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
        shown = secure.sock.getpeercert(binary_form=True) if isinstance(secure.sock, ssl.SSLSocket) else None
        try:
            self._verification.check(shown, address.url)
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
                    f"{url} can't show that it is the node: {error.verify_message.rstrip('.')}",
                    remedy="Name the file of its authority by --ca-file, and the node by the name in its certificate",
                )
            case ssl.SSLError():
                return NodeUntrusted(
                    f"{url} does not speak TLS as we do: {error.reason or error}",
                    remedy="Take http:// if it listens without TLS",
                )
            case TimeoutError():
                return NodeUnreachable(
                    f"{url} did not answer within {self._timeout_s:g} s", remedy="Ask for less, or later"
                )
            case http.client.HTTPException():
                hint = "" if self.address.tls else "; take https:// if it listens with TLS"
                return NodeUnreachable(
                    f"{url} broke off its answer ({type(error).__name__}){hint}", remedy=_UNREACHABLE_REMEDY
                )
            case _:
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                return NodeUnreachable(f"no node answers at {url}: {reason}", remedy=_UNREACHABLE_REMEDY)


def seconds(milliseconds: int) -> str:
    """A time or a duration as the API reads it, to the millisecond."""
    whole, rest = divmod(abs(milliseconds), 1000)
    return f"{'-' if milliseconds < 0 else ''}{whole}" + (f".{rest:03}" if rest else "")


def _list_parameters(selectors: tuple[str, ...], within: TimeBounds, limit: int) -> list[tuple[str, str]]:
    return [*(("match[]", selector) for selector in selectors), *within.parameters(), *_limit_parameter(limit)]


def _limit_parameter(limit: int) -> list[tuple[str, str]]:
    # One more than is wanted tells whether there is more, whatever the node says of it.
    return [("limit", str(limit + 1))] if limit else []

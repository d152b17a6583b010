"""Requests to a node over HTTP."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from strandline.node.client.addresses import NodeAddress, parse_url
from strandline.node.client.answers import Point, SampledSeries
from strandline.node.client.errors import NodeUnreachable, NodeUntrusted, NotANode
from strandline.node.client.node_client import NodeClient, Steps, TimeBounds, seconds
from strandline.node.client.tls_verification import BadCaFile, TlsVerification
from support.certificates import Certificates, make_certificates
from support.fake_node import FakeNode, fake_node

pytestmark = pytest.mark.unit


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with fake_node() as running:
        yield running


@pytest.fixture
def client(node: FakeNode) -> Iterator[NodeClient]:
    with closing(NodeClient(parse_url(node.url), timeout_s=10)) as created:
        yield created


def test_one_more_series_than_the_limit_is_requested(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/series", [{"__name__": "up"}], "a shard is away")
    answer_list = client.series(("up", '{a="ü&"}'), TimeBounds(1_500, 2_000_000), 10)
    assert (answer_list.items, answer_list.more, answer_list.warnings) == (
        ({"__name__": "up"},),
        False,
        ("a shard is away",),
    )
    parameters = [("match[]", "up"), ("match[]", '{a="ü&"}'), ("start", "1.500"), ("end", "2000"), ("limit", "11")]
    assert node.requests == [("GET", "/api/v1/series", parameters)]


def test_without_limit_or_times_none_is_sent(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/labels", ["a"])
    assert client.label_names((), TimeBounds(), 0).items == ("a",)
    assert node.requests == [("GET", "/api/v1/labels", [])]


def test_a_label_may_have_any_name(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/label/a%2Fb%3F%20%C3%BC/values", ["1"])
    assert client.label_values("a/b? ü", (), TimeBounds(), 0).items == ("1",)


def test_a_query_is_sent_for_a_time_or_a_range(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/query", {"resultType": "vector", "result": [{"metric": {}, "value": [1, "2"]}]})
    node.data("/api/v1/query_range", {"resultType": "matrix", "result": [{"metric": {}, "values": [[1, "2"]]}]})
    assert client.query("up", -1500, 0).items == (SampledSeries({}, (Point(1000, "2"),)),)
    assert client.query_range("up", Steps(0, 60_000, 15_000), 5).items == (SampledSeries({}, (Point(1000, "2"),)),)
    ranged = [("query", "up"), ("start", "0"), ("end", "60"), ("step", "15"), ("limit", "6")]
    assert node.requests == [
        ("GET", "/api/v1/query", [("query", "up"), ("time", "-1.500")]),
        ("GET", "/api/v1/query_range", ranged),
    ]


def test_long_requests_are_posted_as_a_form_except_for_label_values(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/series", [])
    node.data("/api/v1/label/a/values", [])
    long = f'{{a="{"x" * 3000}"}}'
    client.series((long,), TimeBounds(), 0)
    client.label_values("a", (long,), TimeBounds(), 0)
    assert [(method, parameters) for method, _, parameters in node.requests] == [
        ("POST", [("match[]", long)]),
        ("GET", [("match[]", long)]),
    ]


def test_all_requests_use_one_connection(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/labels", [])
    for _ in range(3):
        client.label_names((), TimeBounds(), 0)
    assert len(node.connections) == 1
    client.close()
    client.label_names((), TimeBounds(), 0)
    assert len(node.connections) == 2


def test_the_token_is_sent_if_there_is_one(node: FakeNode, client: NodeClient) -> None:
    node.data("/api/v1/labels", [])
    client.label_names((), TimeBounds(), 0)
    with closing(NodeClient(parse_url(node.url), token="s3cret")) as other:
        other.label_names((), TimeBounds(), 0)
    assert [headers.get("Authorization") for headers in node.headers] == [None, "Bearer s3cret"]


def test_a_path_prefix_in_a_url_is_used(node: FakeNode) -> None:
    node.data("/a/b/api/v1/labels", ["x"])
    with closing(NodeClient(parse_url(f"{node.url}/a/b/"))) as client:
        assert client.label_names((), TimeBounds(), 0).items == ("x",)


def test_if_nothing_listens_the_remedy_is_to_start_the_node() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    with pytest.raises(
        NodeUnreachable, match=f"no node answers at http://127.0.0.1:{port}: Connection refused"
    ) as raised:
        NodeClient(NodeAddress("127.0.0.1", port)).label_names((), TimeBounds(), 0)
    assert "`strandline node`" in raised.value.remedy


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 100])
def test_an_unknown_host_is_reported(host: str) -> None:
    with pytest.raises(NodeUnreachable, match="no node answers at"):
        NodeClient(NodeAddress(host, 80)).label_names((), TimeBounds(), 0)


@contextmanager
def listening(act: Callable[[socket.socket], None]) -> Iterator[NodeAddress]:
    """A server that does something to the first connection and closes it."""
    with socket.create_server(("127.0.0.1", 0)) as bound:

        def serve() -> None:
            connection, _ = bound.accept()
            with connection:
                act(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield NodeAddress("127.0.0.1", bound.getsockname()[1])
        thread.join()


def test_a_silent_server_is_waited_for_until_the_timeout() -> None:
    over = threading.Event()

    def act(_: socket.socket) -> None:
        over.wait(60)

    with listening(act) as address:
        with pytest.raises(NodeUnreachable, match=r"did not answer within 0\.05 s"):
            NodeClient(address, timeout_s=0.05).label_names((), TimeBounds(), 0)
        over.set()


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"])
def test_an_incomplete_answer_is_reported(answer: bytes) -> None:
    def act(connection: socket.socket) -> None:
        connection.recv(10_000)
        connection.sendall(answer)

    with (
        listening(act) as address,
        pytest.raises(NodeUnreachable, match="closed the connection before the end of its answer"),
    ):
        NodeClient(address, timeout_s=10).label_names((), TimeBounds(), 0)


def test_another_server_is_not_accepted_as_a_node(node: FakeNode, client: NodeClient) -> None:
    assert node.answers == {}
    with pytest.raises(NotANode, match="answered 404 with text/plain"):
        client.label_names((), TimeBounds(), 0)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls") / "ca")


class TestTls:
    @pytest.fixture
    def secure(self, certificates: Certificates) -> Iterator[FakeNode]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.server_bundle)
        with fake_node(context) as node:
            node.data("/api/v1/labels", ["a"])
            yield node

    def series(self, node: FakeNode, verification: TlsVerification, host: str = "127.0.0.1") -> tuple[str, ...]:
        address = NodeAddress(host, node.server_port, tls=True)
        with closing(NodeClient(address, token="s3cret", verification=verification, timeout_s=10)) as client:
            return client.label_names((), TimeBounds(), 0).items

    def test_a_node_is_verified_by_the_given_authority(self, secure: FakeNode, certificates: Certificates) -> None:
        assert self.series(secure, TlsVerification(certificates.ca)) == ("a",)

    def test_without_the_authority_no_request_is_sent(self, secure: FakeNode) -> None:
        with pytest.raises(NodeUntrusted, match="can't be verified") as raised:
            self.series(secure, TlsVerification())
        assert "--ca-file" in raised.value.remedy
        assert secure.requests == []

    def test_a_certificate_for_another_host_is_not_enough(self, secure: FakeNode, certificates: Certificates) -> None:
        with pytest.raises(NodeUntrusted, match=r"[Hh]ostname mismatch"):
            self.series(secure, TlsVerification(certificates.ca), "localhost")
        assert secure.requests == []

    def test_the_node_s_own_certificate_is_accepted_for_any_host(
        self, secure: FakeNode, certificates: Certificates
    ) -> None:
        own = TlsVerification.pinned_to(certificates.server_bundle.read_text())
        assert self.series(secure, own, "localhost") == ("a",)

    def test_another_certificate_of_the_same_authority_is_refused(
        self, secure: FakeNode, certificates: Certificates
    ) -> None:
        for other in (certificates.client_certificate, certificates.ca):
            with pytest.raises(NodeUntrusted, match=r"is not the one in http\.tls_certificate_file"):
                self.series(secure, TlsVerification.pinned_to(other.read_text()))
        assert secure.requests == []

    def test_a_node_without_tls_has_another_error_than_an_untrusted_one(self, node: FakeNode) -> None:
        with pytest.raises(NodeUntrusted, match="the TLS handshake with") as raised:
            self.series(node, TlsVerification())
        assert "http://" in raised.value.remedy

    def test_plain_http_to_a_tls_server_is_reported(self, secure: FakeNode) -> None:
        with pytest.raises(NodeUnreachable, match="use https://"):
            NodeClient(NodeAddress("127.0.0.1", secure.server_port), timeout_s=10).label_names((), TimeBounds(), 0)

    def test_a_file_without_certificates_is_refused(self, secure: FakeNode, tmp_path: Path) -> None:
        (tmp_path / "empty").write_text("nothing")
        for path, reason in ((tmp_path / "empty", "contains no certificate"), (tmp_path / "none", "No such file")):
            with pytest.raises(BadCaFile, match=reason):
                self.series(secure, TlsVerification(path))


def test_the_client_imports_no_slow_modules() -> None:
    script = (
        "import sys, strandline.node.client.node_client, strandline.node.client.reports;"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"numpy", "numba", "pydantic", "aiohttp", "orjson", "confluent_kafka", "lucene"}
    assert heavy & set(done.stdout.split()) == set()


def test_times_are_sent_in_seconds_to_the_millisecond() -> None:
    assert [seconds(time_ms) for time_ms in (0, 1000, 1, -1, -2500, 1_763_290_800_025)] == [
        "0", "1", "0.001", "-0.001", "-2.500", "1763290800.025",
    ]  # fmt: skip

"""The fleet, the lookups, the connection and the report of `strandline bench query`."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.node.bench.fleet import labels_of
from strandline.node.bench.machine import Machine
from strandline.node.bench.query_bench import QueryOptions
from strandline.node.bench.query_fleet import RACKS, SLOTS, bodies, wider_labels_of
from strandline.node.bench.query_lookups import LookupScope, lookups
from strandline.node.bench.query_report import LookupCost, LookupFigures, QueryReport
from strandline.node.bench.timed_connection import NotAnswered, TimedConnection
from strandline.node.json_values import json_value
from strandline.node.output import Table
from strandline.wire.decode import Limits, decode_batch

pytestmark = pytest.mark.unit

ASKED = LookupScope(1_000_000, 100, 200)


def test_the_fleet_has_a_label_with_ten_values_and_one_with_ten_thousand() -> None:
    labels = [dict(wider_labels_of(number)) for number in range(SLOTS)]
    assert len({request_parameters["rack"] for request_parameters in labels}) == RACKS == 10
    assert len({request_parameters["slot"] for request_parameters in labels}) == SLOTS == 10_000
    assert wider_labels_of(7) == sorted(wider_labels_of(7))
    assert set(labels_of(7)) < set(wider_labels_of(7))


def test_bodies_hold_each_series_once() -> None:
    columns = decode_batch(list(bodies(2_500, 1_700_000_000_000)), Limits())
    assert columns.faults == ()
    assert columns.time.tolist() == [1_700_000_000_000] * 2_500
    assert len(set(zip(columns.key_low.tolist(), columns.key_high.tolist(), strict=True))) == 2_500
    expected = b"".join(name.encode() + value.encode() for name, value in wider_labels_of(2_499))
    assert sum(map(columns.labels(2_499).count, (b"slot-", b"rack-", b"pod-"))) == 3
    assert len(columns.labels(2_499)) > len(expected)


def test_a_lookup_with_a_selector_uses_a_different_one_each_time() -> None:
    for lookup in lookups(ASKED):
        parameters = [parse_qs(urlsplit(lookup.request(number)).query) for number in range(60)]
        if "match[]" in parameters[0]:
            assert len({request_parameters["match[]"][0] for request_parameters in parameters}) == 60, lookup.what


def test_a_selector_matches_all_series_that_share_its_value() -> None:
    small = LookupScope(20_000, 0, 1)
    for label, shared_by in (("pod", 1), ("instance", 1_000), ("namespace", 10_000)):
        selector = small.sharing(label, -3, shared_by)
        value = selector.split('"')[1]
        assert sum(dict(labels_of(number))[label] == value for number in range(20_000)) == shared_by


def test_only_long_lists_of_values_have_a_limit() -> None:
    limited = [
        request_parameters.what for request_parameters in lookups(ASKED) if "limit=" in request_parameters.request(0)
    ]
    assert limited == ["values, one a key, limit 10 k"]


@contextmanager
def answering(*parts: bytes) -> Iterator[TimedConnection]:
    """A server that answers every request with the same parts, until the client disconnects."""
    with socket.create_server(("127.0.0.1", 0)) as bound:

        def serve() -> None:
            link, _ = bound.accept()
            with link:
                while link.recv(10_000):
                    for part in parts:
                        link.sendall(part)

        thread = threading.Thread(target=serve)
        thread.start()
        with closing(TimedConnection("127.0.0.1", bound.getsockname()[1], timeout_s=10)) as connection:
            yield connection
        thread.join()


def test_an_answer_of_known_length_is_read_to_its_end() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 4\r\n\r\nab", b"cd") as connection:
        for _ in range(2):
            answer = connection.get("/x")
            assert (answer.status, answer.body) == (200, b"abcd")
            assert answer.milliseconds > 0


def test_a_chunked_answer_is_joined() -> None:
    head = b"HTTP/1.1 503 No\r\ntransfer-encoding: chunked\r\n\r\n"
    with answering(head + b"3\r\nabc\r\n", b"a\r\n0123", b"456789\r\n0\r", b"\n\r\n") as connection:
        for _ in range(2):
            answer = connection.get("/x")
            assert (answer.status, answer.body) == (503, b"abc0123456789")


def test_an_empty_answer_in_chunks_is_one() -> None:
    with answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") as connection:
        assert connection.get("/x").body == b""


def test_a_response_without_a_length_is_refused() -> None:
    with (
        answering(b"HTTP/1.1 200 OK\r\n\r\n") as connection,
        pytest.raises(NotAnswered, match="neither Content-Length"),
    ):
        connection.get("/x")


def test_an_answer_that_breaks_off_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:

        def serve() -> None:
            link, _ = bound.accept()
            with link:
                link.recv(10_000)
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")

        thread = threading.Thread(target=serve)
        thread.start()
        with (
            closing(TimedConnection("127.0.0.1", bound.getsockname()[1], timeout_s=10)) as connection,
            pytest.raises(NotAnswered, match="in the middle of an answer"),
        ):
            connection.get("/x")
        thread.join()


def test_percentiles_are_the_median_and_p99() -> None:
    cost = LookupCost.of([float(number) for number in range(200, 0, -1)], 0.5)
    assert (cost.p50_ms, cost.p99_ms, cost.cpu_ms) == (101.0, 199.0, 2.5)
    assert LookupCost.of([7.0], None) == LookupCost(7.0, 7.0, None)


def report(peer: LookupCost | None) -> QueryReport:
    figures = LookupFigures("series, 1 key", 200, 1, LookupCost(1.0, 2.0, 0.5), peer)
    machine = Machine("cpu", 2, 1000, "6.1", "3.11")
    name = "victoria-metrics" if peer is not None else None
    return QueryReport(1000, 12, 1, machine, name, "", (figures,))


def test_the_report_is_one_table_with_both_sides() -> None:
    [table] = [block for block in report(LookupCost(3.0, 3.0, None)).blocks() if isinstance(block, Table)]
    assert table.rows == (("series, 1 key", "200", "1", "1.00", "2.00", "0.50", "3.00", "3.00", "-", "3.00", "1.50"),)
    assert table.columns[6] == "victoria-metrics p50 ms"
    assert len(table.columns) == len(table.rows[0])


def test_without_a_peer_its_columns_are_missing() -> None:
    [table] = [block for block in report(None).blocks() if isinstance(block, Table)]
    assert len(table.columns) == len(table.rows[0]) == 6


def test_the_report_is_json_too() -> None:
    document = json_value(report(LookupCost(3.0, 4.0, 5.0)))
    assert isinstance(document, dict)
    assert document["lookups"] == [
        {
            "what": "series, 1 key",
            "requests": 200,
            "found": 1,
            "strandline": {"p50_ms": 1.0, "p99_ms": 2.0, "cpu_ms": 0.5},
            "peer": {"p50_ms": 3.0, "p99_ms": 4.0, "cpu_ms": 5.0},
        }
    ]


@pytest.mark.parametrize(
    ("warm_up_s", "turns"),
    [
        (0.0, 10_000),
        # A millisecond each: fifteen seconds would be 15,000.
        (0.2, 10_000),
        (1.0, 3000),
        (15.0, 200),
        (70.0, 200),
    ],
)
def test_fast_lookups_get_more_requests(warm_up_s: float, turns: int) -> None:
    assert QueryOptions(1000, requests=200).request_count(warm_up_s) == turns

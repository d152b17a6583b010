"""`strandline bench promql` without real servers."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from strandline.clock import SystemClock
from strandline.node.bench import promql_bench
from strandline.node.bench.machine import Machine
from strandline.node.bench.promql_answers import (
    PromqlDiffers,
    PromqlFailed,
    check_agreement,
    check_ranks,
    series_in,
)
from strandline.node.bench.promql_bench import PromqlBench, PromqlOptions
from strandline.node.bench.promql_fleet import JOBS, PromqlScrapes, labels_of
from strandline.node.bench.promql_queries import QUERIES, QueryRange, ranges
from strandline.node.bench.promql_report import Cost, PromqlReport, QueryCost, picture
from strandline.node.bench.promql_servers import MeasuredServer
from strandline.node.bench.query_servers import Server
from strandline.node.bench.scrapes import INTERVAL_MS
from strandline.node.steps import LineSteps
from strandline.promql.parser import parse
from strandline.wire.decode import Limits, decode_batch

pytestmark = pytest.mark.unit

BEGIN = 1_790_000_040_000


def matrix(*values: float, **labels: str) -> list[dict[str, object]]:
    return [{"metric": labels, "values": [[60 * place, str(value)] for place, value in enumerate(values)]}]


class FixedAnswerServer(ThreadingHTTPServer):
    """Gives every query the same answer, and records the requests."""

    daemon_threads = True

    def __init__(self, value: float = 1.0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.value, self.requests = value, Counter[str]()


class Handler(BaseHTTPRequestHandler):
    server: FixedAnswerServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.server.requests[parse_qs(urlsplit(self.path).query)["query"][0]] += 1
        data = {"resultType": "matrix", "result": matrix(self.server.value, job="a")}
        body = json.dumps({"status": "success", "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def answering(value: float = 1.0) -> Iterator[FixedAnswerServer]:
    with FixedAnswerServer(value) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def measure(server: FixedAnswerServer, name: str, *, is_prometheus: bool = True) -> MeasuredServer:
    return MeasuredServer(Server(name, "127.0.0.1", server.server_address[1]), is_prometheus=is_prometheus)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromqlBench:
    monkeypatch.setattr(promql_bench, "_MEASURED_S", 0.0)
    options = PromqlOptions(1000, hours=4, requests=2)
    return PromqlBench(options, tmp_path, LineSteps("bench", StringIO(), SystemClock()))


def test_a_scrape_has_the_series_in_their_proportions_and_targets_have_one_time() -> None:
    scrapes = PromqlScrapes(1000, BEGIN)
    first = decode_batch(list(scrapes.next()), Limits())
    assert first.faults == ()
    assert len(first.value) == scrapes.series == 600 + 25 * 12 + 100 + 3 * 20
    of_target = np.split(first.time, np.cumsum([len(labels_of(target)) for target in range(19)]))
    assert all(len(set(times.tolist())) == 1 for times in of_target)
    # No query's window ends at a sample.
    assert all(times[0] % INTERVAL_MS for times in of_target)
    second = decode_batch(list(scrapes.next()), Limits())
    assert (second.time - first.time == INTERVAL_MS).all()


def test_buckets_are_cumulative_and_counters_never_fall() -> None:
    scrapes = PromqlScrapes(50, BEGIN)
    before, after = (decode_batch(list(scrapes.next()), Limits()).value for _ in range(2))
    names = [dict(labels) for labels in labels_of(0)]
    buckets = np.array([labels["__name__"].endswith("_bucket") and labels["method"] == "GET" for labels in names])
    assert (np.diff(after[buckets]) >= 0).all()
    counters = np.array([labels["__name__"].endswith("_total") for labels in names])
    assert (after[counters] >= before[counters]).all()
    assert len({label["job"] for target in range(2 * JOBS) for label in map(dict, labels_of(target))}) == JOBS


def test_measuring_waits_for_all_processes_whose_cpu_time_counts(
    bench: PromqlBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_for: list[int] = []

    def wait(pids: list[int], _: object) -> bool:
        waited_for.extend(pids)
        return True

    monkeypatch.setattr(promql_bench, "wait_until_idle", wait)
    node = MeasuredServer(Server("node", "127.0.0.1", 1, pid=10), helpers=(11,))
    peers = [MeasuredServer(Server(str(pid), "127.0.0.1", 1, pid=pid)) for pid in (12, None)]
    assert bench._wait_until_idle([node, *peers]) == ()
    assert waited_for == [10, 11, 12]


def test_all_queries_parse_and_steps_are_full_seconds() -> None:
    for query in QUERIES:
        parse(query.expression)
    short, long = ranges(24, 1_790_000_280)
    assert (short.step, short.steps, long.step, long.steps) == (60, 60, 360, 240)
    requests = parse_qs(urlsplit(short.target("up")).query)
    assert int(requests["end"][0]) - int(requests["start"][0]) == 59 * 60
    assert ranges(1, 1_790_000_280) == (QueryRange(1, 60, 1_790_000_280),)


def test_answers_agree_but_for_rounding() -> None:
    check_agreement("q", matrix(1.0, float("nan"), job="a"), matrix(1.0 + 1e-9, float("nan"), job="a"), "peer")


@pytest.mark.parametrize(
    ("theirs", "text"),
    [
        ([], "1 series on the node, and 0"),
        (matrix(1.0, job="b"), "lacks the series"),
        (matrix(1.0, 1.0, job="a"), "has 1 points, and 2"),
        (matrix(1.00001, job="a"), "is 1.0 at 0, and 1.00001"),
    ],
)
def test_differences_are_named(theirs: list[dict[str, object]], text: str) -> None:
    with pytest.raises(PromqlDiffers, match=text):
        check_agreement("q", matrix(1.0, job="a"), theirs, "peer")


def test_series_of_equal_rank_may_differ_but_not_their_values() -> None:
    first, second = matrix(2.0, 1.0, job="a"), matrix(2.0, 1.0 + 1e-9, job="b")
    check_ranks("q", first, second, "peer")
    with pytest.raises(PromqlDiffers, match="lacks the series"):
        check_agreement("q", first, second, "peer")
    with pytest.raises(PromqlDiffers, match=r"is \[1.0\] at 60, and \[1.5\] on peer"):
        check_ranks("q", first, matrix(2.0, 1.5, job="a"), "peer")
    with pytest.raises(PromqlDiffers, match=r"is \[2.0\] at 0, and \[2.0, 2.0\] on peer"):
        check_ranks("q", first, [*first, *second], "peer")
    with pytest.raises(PromqlDiffers, match="at 2 times, and at 1 on peer"):
        check_ranks("q", first, matrix(2.0, job="a"), "peer")


def test_an_error_of_a_server_is_reported() -> None:
    with pytest.raises(PromqlFailed, match="peer answered up with 422: no"):
        series_in(422, b"no", "up", "peer")


def test_every_query_is_sent_to_every_server_over_each_range_and_reported(bench: PromqlBench) -> None:
    with ExitStack() as servers:
        node, peer = (servers.enter_context(answering()) for _ in range(2))
        queries, scaling = bench.measure(measure(node, "node"), [measure(peer, "peer")])
    assert [cost.what for cost in queries] == 2 * [query.what for query in QUERIES]
    assert node.requests == peer.requests
    assert [(cost.hours, cost.steps) for cost in queries[::12]] == [(1, 60), (4, 240)]
    assert [cost.hours for cost in scaling] == [1, 1, 1, 1, 4]
    assert all(cost.requests == 2 and cost.results == 1 for cost in queries)
    # CPU time and memory of servers that the benchmark has not started are unknown.
    assert queries[0].node.cpu_ms is None
    assert queries[0].node.peak_bytes is None


def test_a_peer_of_another_kind_may_differ_only_where_its_functions_do(bench: PromqlBench) -> None:
    with ExitStack() as servers:
        node, peer = servers.enter_context(answering(1.0)), servers.enter_context(answering(2.0))
        with pytest.raises(PromqlDiffers, match="quantile by"):
            bench.measure(measure(node, "node"), [measure(peer, "peer", is_prometheus=False)])


def cost(server: str, factor: float) -> Cost:
    return Cost.of(server, [3.0 * factor, 1.0 * factor, 2.0 * factor], 0.3 * factor, round(factor * (8 << 20)))


def report() -> PromqlReport:
    def cost_of(hours: float, steps: int, series: int) -> QueryCost:
        return QueryCost("sum", "sum(a)", hours, steps, series, 1, 3, cost("strandline", 1), (cost("peer", 2),))

    return PromqlReport(
        series=1000,
        samples=10,
        stored_samples=5,
        machine=Machine("cpu", 2, 1, "k", "p"),
        load_average=0.5,
        peers=("peer",),
        notes=(),
        queries=(cost_of(1, 60, 1000), cost_of(4, 240, 1000)),
        scaling=(cost_of(1, 60, 100), cost_of(1, 60, 1000), cost_of(4, 60, 1000)),
    )


def test_a_report_compares_cpu_time() -> None:
    row = report().queries[0].row()
    assert row == ("sum", "3", "1", "2.0", "100.0", "8", "4.0", "200.0", "16", "0.50")
    assert len([block for block in report().blocks() if not isinstance(block, str)]) == 3


def test_a_picture_has_time_and_memory_against_series_and_range() -> None:
    drawn = picture(report())
    for title in ("Time against series", "Memory against series", "Time against hours", "Memory against hours"):
        assert title in drawn
    assert drawn.count("<polyline") == 8


def test_a_picture_of_one_range_has_no_panels_of_ranges() -> None:
    one_range = replace(report(), scaling=tuple(row for row in report().scaling if row.hours == 1))
    drawn = picture(one_range)
    assert "against series" in drawn
    assert "against hours" not in drawn

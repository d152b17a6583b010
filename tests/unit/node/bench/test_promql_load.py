"""The results of a load: speeds, lags, latencies and refusals; and a load without real servers."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.load_report import (
    Lag,
    LoadFailed,
    LoadReport,
    ProgressSample,
    QueryOutcome,
    downsampled,
    ingested_speed,
    lags_of,
    latencies_of,
    memory_of,
    records_due,
    refusals_of,
    speed_of,
)
from strandline.node.bench.prepared_records import PreparedRecords
from strandline.node.bench.promql_fleet import PromqlScrapes
from strandline.node.bench.promql_load import LoadOptions, LoadTarget, PromqlLoad, outcome_of
from strandline.node.bench.promql_queries import QUERIES
from strandline.node.bench.query_servers import Server
from strandline.node.bench.scrapes import INTERVAL_MS
from strandline.node.bench.timed_connection import TimedAnswer
from strandline.node.steps import LineSteps
from strandline.wire.decode import Limits, decode_batch

pytestmark = pytest.mark.unit

BEGIN = 1_790_000_040_000
FIRST_OFFSET = 500
LIMIT = "the query took longer than 30 s. Narrow the selector; or raise query.timeout"
FULL = "answers that clients have not received yet use the 1,024 bytes of query.answer_memory"


def outcome(what: str, milliseconds: float, status: int = 200, error: str = "") -> QueryOutcome:
    return QueryOutcome(what, milliseconds, status, error)


def report(*refused: QueryOutcome, read_all_s: float | None = 0.5) -> LoadReport:
    answers = (outcome("sum", 10.0), outcome("sum", 30.0), outcome("count", 5.0), *refused)
    return LoadReport(
        clients=2,
        seconds=60.0,
        read_speed=1000.0,
        written_speed=500.0,
        ingested_speed=499.0,
        answers=3,
        with_warnings=1,
        queries=latencies_of(["sum", "count"], answers),
        refusals=refusals_of(answers),
        lags=(Lag(0.0, 0, 0.0), Lag(1.0, 30, 2.5), Lag(2.0, 5, 0.2)),
        read_all_s=read_all_s,
        memory=memory_of({"shard 0": 100 << 20, "front": 50 << 20}, {"shard 0": 30 << 20}),
    )


def test_the_speed_of_reading_counts_from_the_last_poll_before_it_began_to_the_first_after_it_ended() -> None:
    points = [(0.0, 0), (3.0, 0), (4.0, 500), (5.0, 1000), (9.0, 1000)]
    assert speed_of(points, 1000) == 500.0


def test_records_are_due_in_proportion_to_the_time_and_never_more_than_there_are() -> None:
    assert [records_due(seconds, 2.0, 5) for seconds in (0.0, 0.4, 0.5, 1.9, 60.0)] == [0, 0, 1, 3, 5]


def test_the_lag_is_the_age_of_the_oldest_record_that_is_not_read() -> None:
    written_at = [0.0, 1.0, 2.0, 3.0]
    progress = (ProgressSample(3.5, 4, 1, 0), ProgressSample(4.0, 4, 4, 0))
    assert lags_of(progress, written_at) == (Lag(3.5, 3, 2.5), Lag(4.0, 0, 0.0))


def test_records_written_while_the_position_is_queried_make_no_negative_lag() -> None:
    assert lags_of((ProgressSample(1.0, 2, 3, 0),), [0.1, 0.2, 1.1]) == (Lag(1.0, 0, 0.0),)


def test_samples_that_were_ingested_before_the_load_do_not_count() -> None:
    assert ingested_speed((ProgressSample(1.0, 0, 0, 10_000), ProgressSample(3.0, 0, 0, 10_500))) == 250.0


def test_only_answers_count_for_latencies() -> None:
    notes = [outcome("sum", float(number)) for number in range(1, 101)] + [outcome("sum", 30_000.0, 503, LIMIT)]
    (row,) = latencies_of(["sum"], notes)
    assert (row.answered, row.refused, row.p50_ms, row.p99_ms) == (100, 1, 51.0, 100.0)
    (none,) = latencies_of(["count"], notes)
    assert none.row() == ("count", "0", "0", "-", "-")


@pytest.mark.parametrize(
    ("status", "error", "is_named"),
    [
        (503, LIMIT, True),
        (503, FULL, True),
        (422, "the query reads 9 samples, and 8 are allowed. Raise query.max_samples", True),
        (503, "the query took longer than 1 s. Narrow the selector; or raise the timeout= of the request", True),
        (503, "shard 0 has ended and is started again", False),
        (500, "unexpected error; query.timeout is no reason", False),
        (0, "127.0.0.1:1 closed the connection in the middle of an answer", False),
    ],
)
def test_a_refusal_has_to_name_its_limit(status: int, error: str, is_named: bool) -> None:
    refused = outcome("sum", 1.0, status, error)
    assert refused.names_a_limit is is_named
    checked = report(refused)
    assert [one.names_a_limit for one in checked.refusals] == [is_named]
    if is_named:
        checked.check()
    else:
        with pytest.raises(LoadFailed, match="other reasons than a limit"):
            checked.check()


def test_records_that_are_never_read_make_it_fail() -> None:
    with pytest.raises(LoadFailed, match="did not read all"):
        report(read_all_s=None).check()


def test_a_report_has_speeds_lags_memory_latencies_and_errors() -> None:
    lines = [block for block in report(outcome("sum", 1.0, 503, FULL)).blocks() if isinstance(block, str)]
    tables = [block for block in report(outcome("sum", 1.0, 503, FULL)).blocks() if not isinstance(block, str)]
    assert "2 clients for 60 s, while 500 samples/s were written and 499 read" in lines[0]
    assert "at most 2.5 s (30 records), 0.2 s (5 records) at the end; all were read 0.5 s after" in lines[1]
    assert lines[3] == "peak memory: front 0 MB above 50 MB; shard 0 30 MB above 100 MB"
    assert tables[0].rows[0] == ("sum", "2", "1", "30", "30")
    assert tables[1].rows == (("503", FULL, "1"),)
    assert tables[2].rows[-1] == ("2", "5", "0.2")


def test_a_table_of_lags_ends_with_the_last_one() -> None:
    lags = tuple(Lag(float(second), 0, 0.0) for second in range(61))
    chosen = downsampled(lags, 12)
    assert len(chosen) <= 12
    assert chosen[-1] is lags[-1]


def test_prepared_records_are_read_back_unchanged(tmp_path: Path) -> None:
    records = PreparedRecords(tmp_path / "records")
    bodies = [b"one", b"", b"x" * 70_000]
    records.fill(iter(bodies))
    assert records.count == 3
    assert list(records) == bodies


def test_scrapes_of_a_load_continue_at_another_interval() -> None:
    scrapes = PromqlScrapes(50, BEGIN)
    first = decode_batch(list(scrapes.next()), Limits())
    assert scrapes.next_time == BEGIN + INTERVAL_MS
    second = decode_batch(list(scrapes.next(scrapes.next_time)), Limits())
    third = decode_batch(list(scrapes.next(BEGIN + INTERVAL_MS + 40)), Limits())
    assert (second.time - first.time == INTERVAL_MS).all()
    assert (third.time - second.time == 40).all()


def test_an_error_is_noted_with_its_text_and_an_answer_with_its_warnings() -> None:
    query = QUERIES[0]
    body = b'{"status":"error","errorType":"timeout","error":"too late"}'
    assert outcome_of(query, TimedAnswer(5.0, 503, body)).error == "too late"
    assert outcome_of(query, TimedAnswer(5.0, 502, b"<html>")).error == "<html>"
    assert not outcome_of(query, TimedAnswer(5.0, 200, b'"result":[]}}')).has_warnings
    assert outcome_of(query, TimedAnswer(5.0, 200, b'...]},"warnings":["shard 0 is behind"]}')).has_warnings


class Node(ThreadingHTTPServer):
    """Answers queries, every third with an error, and reads records as soon as they are written to its log."""

    daemon_threads = True

    def __init__(self, error: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.error, self.requests, self.records = error, Counter[str](), list[bytes]()

    def write(self, body: bytes) -> None:
        self.records.append(body)

    def flush(self) -> None:
        """All records are already written."""


class Handler(BaseHTTPRequestHandler):
    server: Node
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        parameters = parse_qs(urlsplit(self.path).query)
        if not parameters:
            position, samples = FIRST_OFFSET + len(self.server.records), 50 * len(self.server.records)
            figures = (("position_offset", position), ("ingested_samples_total", samples))
            self._answer(200, "".join(f'strandline_{name}{{shard="0"}} {value}\n' for name, value in figures).encode())
            return
        assert parameters["timeout"] == ["30s"]
        query = parameters["query"][0]
        self.server.requests[query] += 1
        if self.server.requests[query] == 3:
            self._answer(503, json.dumps({"status": "error", "error": self.server.error}).encode())
        else:
            self._answer(200, b'{"status":"success","data":{"resultType":"matrix","result":[]}}')

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def node(error: str) -> Iterator[Node]:
    with Node(error) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("error", [LIMIT, "the shard is gone"])
def test_clients_send_all_queries_in_turn_while_records_are_written(tmp_path: Path, error: str) -> None:
    scrapes = PromqlScrapes(50, BEGIN)
    list(scrapes.next())
    with node(error) as server:
        measured_node = Server("node", "127.0.0.1", server.server_address[1])
        target = LoadTarget(server, measured_node, FIRST_OFFSET, read_speed=40.0 * scrapes.series)
        load = PromqlLoad(LoadOptions(3, 1.0), target, scrapes, tmp_path, SystemClock())
        result = load.run(LineSteps("load", StringIO(), SystemClock()))
    # Half of the reading speed, with one record per scrape.
    times = [decode_batch([body], Limits()).time for body in server.records]
    assert 0 < len(times) <= 20
    assert result.written_speed == pytest.approx(len(times) * scrapes.series)
    assert all((later - earlier == 50).all() for earlier, later in pairwise(times))
    assert set(server.requests) == {query.expression for query in QUERIES}
    assert result.answers == server.requests.total() - len(QUERIES)
    assert [(refusal.status, refusal.error, refusal.count) for refusal in result.refusals] == [
        (503, error, len(QUERIES))
    ]
    assert result.read_all_s is not None
    if error == LIMIT:
        result.check()
    else:
        with pytest.raises(LoadFailed, match="12 x 503 the shard is gone"):
            result.check()

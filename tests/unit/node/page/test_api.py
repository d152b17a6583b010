from contextlib import closing
from dataclasses import replace
from typing import Any

import orjson
import pytest

import strandline
from strandline.clock import ManualClock
from strandline.errors import Retryable
from strandline.node.http.routes import Access
from strandline.node.page.api import MAX_BUCKETS, MAX_DAYS, MAX_ENTRIES, page_routes
from strandline.node.query.queries import QueryUnavailable
from strandline.node.query.shard_requests import BucketsRequest, CardinalityRequest
from strandline.node.settings import Settings
from strandline.node.shard.bucket_report import BucketFigures
from strandline.node.shard.report import ProcessFigures
from strandline.node.shard.status import Phase
from strandline.node.status.processes import FRONT, WORKER, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.workers import Workers
from strandline.recovery.periods import HOUR
from strandline.time_range import TimeRange
from support.fake_queries import FakeQueries
from support.http_servers import Reply, in_loop, served
from support.page_shards import FakeHours, PublishedStatus, active, recovering

pytestmark = pytest.mark.unit

SERIES = [({"__name__": "up", "instance": f"web-{place}"}, [(1000, 1.0)]) for place in range(30)]


class ServedPage:
    """The page's handlers, behind the server."""

    def __init__(self, queries: FakeQueries | None = None) -> None:
        self.queries = queries or FakeQueries(SERIES)
        self.status, self.hours, self.clock = PublishedStatus(), FakeHours(), ManualClock()
        self.workers = Workers(2)
        self.routes = page_routes(
            self.status, self.queries, self.workers, self.hours, settings=Settings(), clock=self.clock
        )

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        async def send() -> Reply:
            async with served(self.routes) as serving:
                return await serving.get(f"/api/v1/strandline/{path}")

        with closing(self.workers):
            reply = in_loop(send())
        return reply.status, orjson.loads(reply.body)

    def data(self, path: str) -> Any:
        status, body = self.get(path)
        assert (status, body["status"]) == (200, "success")
        return body["data"]


def test_the_node_reports_its_dataset_version_and_start() -> None:
    page = ServedPage()
    begun = page.status.started = page.clock.now_ms()
    page.clock.sleep(5)
    data = page.data("shards")
    assert (data["dataset"], data["version"]) == ("metrics", strandline.__version__)
    assert (data["started_ms"], data["now_ms"]) == (begun, begun + 5000)
    assert data["waits_for"] == ""
    page.status.waiting = "there is no topic metrics"
    assert page.data("shards")["waits_for"] == "there is no topic metrics"


def test_the_front_and_the_worker_are_listed_with_the_reason_of_their_failures() -> None:
    page = ServedPage()
    reason = "ended with exit code 1: no Java was found. Install it"
    worker = ProcessStatus(WORKER, ProcessState.DOWN, restarts=5, exit_code=1, reason=reason)
    process = ProcessFigures(77, 1.5, 3_000, 4_000)
    page.status.others = (ProcessStatus(FRONT, ProcessState.RUNNING, 77, process=process), worker)
    front, worker = page.data("shards")["processes"]
    assert (front["name"], front["process"], front["pid"], front["memory_bytes"]) == ("front", "running", 77, 3_000)
    assert (worker["process"], worker["restarts"], worker["reason"]) == ("down", 5, reason)


def test_an_active_shard_has_figures() -> None:
    page = ServedPage()
    [first, _] = page.data("shards")["shards"]
    report = active(0).report
    assert report is not None
    assert (first["shard"], first["process"], first["active"], first["phase"]) == (0, "running", True, "active")
    assert (first["lag"], first["keys"], first["restarts"]) == (report.status.lag, report.keys, 0)
    assert first["buffer"]["memory_bytes"] == report.buffer.memory_bytes
    assert first["samples"] == report.status.counters.samples
    assert (first["position"], first["checkpoint"]) == (report.position, report.checkpoint)
    assert first["kafka_keeps_ms"] == report.status.time_left
    report.status.counters.newest_record_at = page.clock.now_ms() - 3_000
    page.status.statuses = (replace(active(0), report=report),)
    assert page.data("shards")["shards"][0]["lag_s"] == 3


def test_an_active_shard_has_its_warnings_as_reason() -> None:
    page = ServedPage()
    report = active(0).report
    assert report is not None
    page.status.statuses = (replace(active(0), report=replace(report, topic_warning="unclean elections are allowed")),)
    assert page.data("shards")["shards"][0]["reason"] == "unclean elections are allowed"
    stuck = replace(report, status=replace(report.status, stuck="its storing thread made no progress"))
    page.status.statuses = (replace(active(0), report=stuck),)
    assert page.data("shards")["shards"][0]["reason"] == "its storing thread made no progress"


def test_a_recovering_shard_shows_its_phase_progress_and_time_left() -> None:
    page = ServedPage()
    begun = page.clock.now_ms()
    page.status.statuses = (recovering(0, Phase.REPLAYING, 0.25, entered_ms=begun),)
    page.clock.sleep(10)
    [shard] = page.data("shards")["shards"]
    assert (shard["active"], shard["phase"], shard["progress"]) == (False, "replaying", 0.25)
    assert shard["time_left_s"] == pytest.approx(30)


def test_a_shard_without_a_process_has_a_reason_and_no_figures() -> None:
    page = ServedPage()
    page.status.statuses = (
        ShardProcessStatus(3, ProcessState.WAITING, restarts=2, starts_in_s=4.5, exit_code=1, reason="no Kafka"),
    )
    [shard] = page.data("shards")["shards"]
    assert (shard["process"], shard["reason"], shard["exit_code"], shard["restarts"]) == ("waiting", "no Kafka", 1, 2)
    assert shard["starts_in_s"] == 4.5
    assert {shard[figure] for figure in ("phase", "progress", "lag", "keys", "samples", "buffer")} == {None}


def test_a_failed_phase_has_its_reason_unless_the_process_has_one() -> None:
    page = ServedPage()
    failed = recovering(0, Phase.FAILED, None)
    assert failed.report is not None
    failed.report.status.reason = "the spill is full"
    page.status.statuses = (failed, replace(failed, shard=1, reason="killed by signal 9"))
    assert [shard["reason"] for shard in page.data("shards")["shards"]] == ["the spill is full", "killed by signal 9"]


def test_shards_are_listed_even_if_no_shard_answers() -> None:
    page = ServedPage(FakeQueries(failure=QueryUnavailable("no shard answers")))
    assert len(page.data("shards")["shards"]) == 2


def test_buckets_are_requested_within_a_range_and_a_limit() -> None:
    figures = BucketFigures(1, 480, 0, HOUR, active=7, changed=2, samples=70, bytes=9, state="stored")
    page = ServedPage(FakeQueries(buckets=(figures,), warnings=("shard 0 is recovering",)))
    status, answer = page.get("buckets?start=10&end=20&limit=50")
    assert (status, answer["warnings"]) == (200, ["shard 0 is recovering"])
    [bucket] = answer["data"]
    assert (bucket["shard"], bucket["bucket"], bucket["active"], bucket["state"]) == (1, 480, 7, "stored")
    assert page.queries.requests == [BucketsRequest(TimeRange(10_000, 20_000), 51)], (
        "one more than the limit, to detect a truncated list"
    )


@pytest.mark.parametrize("parameters", ["", "?limit=0", "?limit=1000000"])
def test_a_list_of_buckets_always_has_a_limit(parameters: str) -> None:
    page = ServedPage()
    page.get(f"buckets{parameters}")
    [request] = page.queries.requests
    assert 0 < request.limit <= MAX_BUCKETS + 1


def test_a_truncated_list_of_buckets_has_a_warning_and_the_newest_buckets() -> None:
    figures = tuple(
        BucketFigures(shard, bucket, 0, HOUR, active=1, changed=1, samples=1, bytes=1, state="stored")
        for bucket in (7, 8, 9)
        for shard in (0, 1)
    )
    queries = FakeQueries(buckets=figures)
    _, complete = ServedPage(queries).get("buckets?limit=3")
    assert (len(complete["data"]), complete["warnings"]) == (6, [])
    _, answer = ServedPage(queries).get("buckets?limit=2")
    assert [(bucket["bucket"], bucket["shard"]) for bucket in answer["data"]] == [(8, 0), (8, 1), (9, 0), (9, 1)]
    assert answer["warnings"] == [
        "results truncated due to limit: there are more than the 2 newest buckets that are listed"
    ]


def test_cardinality_is_requested_by_series_time_and_label() -> None:
    page = ServedPage()
    data = page.data('cardinality?match[]=up{instance!="web-0"}&start=0&end=2&limit=5&label=instance')
    assert data["series"] == 29
    assert data["label_names"] == 2
    assert data["top_metrics"] == [{"label": "__name__", "value": "up", "series": 29}]
    assert data["top_labels"][0] == {"name": "instance", "values": 29, "series": 29, "value_bytes": 9 * 5 + 20 * 6}
    assert data["label"] == "instance"
    assert [len(data[top]) for top in ("top_pairs", "top_values")] == [5, 5]
    [request] = page.queries.requests
    assert isinstance(request, CardinalityRequest)
    assert (request.within, request.limit, request.label, request.samples) == (TimeRange(0, 2000), 5, "instance", False)
    assert data["samples"] is None


def test_samples_are_estimated_on_request() -> None:
    page = ServedPage()
    page.data("cardinality?match[]=up&samples=true")
    [request] = page.queries.requests
    assert isinstance(request, CardinalityRequest)
    assert request.samples


def test_only_the_largest_labels_and_the_number_of_labels_are_sent() -> None:
    labels = {f"label_{place:05}": "x" for place in range(3000)}
    page = ServedPage(
        FakeQueries([({"__name__": "wide"} | labels, []), ({"__name__": "wide", "label_00007": "y"}, [])])
    )
    data = page.data("cardinality")
    assert data["label_names"] == 3001
    assert [label["name"] for label in data["top_labels"][:2]] == ["label_00007", "__name__"]
    assert len(data["top_labels"]) == 10


def test_no_top_is_longer_than_the_maximum() -> None:
    page = ServedPage()
    page.data("cardinality?limit=1000000000")
    [request] = page.queries.requests
    assert request.limit == MAX_ENTRIES


def test_an_invalid_selector_is_refused_with_a_message() -> None:
    status, body = ServedPage().get("cardinality?match[]=up{")
    assert (status, body["errorType"]) == (400, "bad_data")
    assert "match[]" in body["error"]


def test_two_days_of_hours_end_with_the_current_one() -> None:
    page = ServedPage()
    hours = page.data("hours")
    now = page.clock.now_ms() // HOUR
    assert [hour["start"] // HOUR for hour in hours] == list(range(now - 47, now + 1))
    assert [hour["verdict"] for hour in hours] == ["ready"] * 47 + ["not ready"]
    assert hours[-1].keys() >= {"hour", "verdict", "revision", "late_samples"}


@pytest.mark.parametrize("days", ["0", "-1", "x", "1.5", str(MAX_DAYS + 1), "9" * 50, "\u0661"])
def test_invalid_days_are_refused(days: str) -> None:
    status, body = ServedPage().get(f"hours?days={days}")
    assert (status, body["errorType"]) == (400, "bad_data")


def test_hours_that_can_not_be_determined_are_retryable() -> None:
    page = ServedPage()
    page.hours.failure = Retryable("Kafka at localhost:9092 can't be reached")
    status, body = page.get("hours")
    assert status == 503
    assert "Kafka at localhost:9092" in body["error"]


def test_every_path_needs_read_access() -> None:
    assert {route.access for route in ServedPage().routes} == {Access.READ}

"""The routes for metrics and readiness."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from strandline.clock import ManualClock
from strandline.node.http.routes import Access, Route
from strandline.node.json_values import json_value
from strandline.node.metrics.exposition import expose
from strandline.node.metrics.families import Families
from strandline.node.metrics.metric import gauge
from strandline.node.metrics.node_families import node_families
from strandline.node.metrics.readiness_watch import ReadinessWatch
from strandline.node.metrics.routes import metrics_routes, readiness_routes
from strandline.node.offsets.deployment import Deployment
from strandline.node.offsets.hours import check_ready
from strandline.node.settings import Settings
from strandline.node.settings.units import Duration
from strandline.node.workers import Workers
from strandline.recovery.periods import parse_period
from strandline.store.protocol import StoreUnavailable
from support.full_figures import NOW, full_front, full_readiness, full_shard_status, full_state
from support.http_servers import Reply, in_loop, served
from support.offsets_commands import MemoryTopic
from support.shard_world import World, produce_everywhere

pytestmark = pytest.mark.unit

OPENMETRICS = "application/openmetrics-text"
# The Accept header of Debian's Prometheus.
PROMETHEUS = f"{OPENMETRICS};version=1.0.0,{OPENMETRICS};version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def get(
    routes: tuple[Route, ...], path: str, headers: Mapping[str, str] | None = None
) -> tuple[int, Mapping[str, str], bytes]:
    """The answer of a server with these routes: code, headers and body."""

    async def run() -> Reply:
        async with served(routes) as serving:
            return await serving.get(path, headers=headers)

    reply = in_loop(run())
    return reply.status, reply.headers, reply.body


def collect() -> Any:
    return node_families(full_state([full_shard_status()]), 0.5, full_front(), full_readiness(), NOW)


# Metrics.


def test_a_scrape_gets_the_text_format_with_its_version() -> None:
    code, headers, body = get(metrics_routes(collect), "/metrics")
    assert (code, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    families = {family.name: family for family in text_string_to_metric_families(body.decode())}
    assert [sample.value for sample in families["strandline_keys"].samples] == [134]


@pytest.mark.parametrize("accept", [OPENMETRICS, PROMETHEUS, f"text/html, {OPENMETRICS.upper()} ;version=nonsense"])
def test_a_scraper_that_accepts_openmetrics_gets_it(accept: str) -> None:
    code, headers, body = get(metrics_routes(collect), "/metrics", {"Accept": accept})
    assert code == 200
    assert headers["Content-Type"].startswith(f"{OPENMETRICS}; version=1.0.0")
    assert body.endswith(b"# EOF\n")
    families = {family.name: family for family in openmetrics_families(body.decode())}
    assert families["strandline_ingested_samples"].type == "counter"


@pytest.mark.parametrize("accept", ["", "*/*", "text/plain;version=abc", ",;=,", "application/json"])
def test_any_other_scraper_gets_the_text_format(accept: str) -> None:
    assert expose(collect(), accept).content_type.startswith("text/plain; version=0.0.4")


def test_each_scrape_collects_again() -> None:
    scrapes = []

    def counting() -> Any:
        scrapes.append(1)
        return collect()

    routes = metrics_routes(counting)
    assert scrapes == []
    get(routes, "/metrics")
    get(routes, "/metrics")
    assert len(scrapes) == 2
    assert [route.access for route in routes] == [Access.READ]


def test_values_of_labels_are_escaped() -> None:
    metric = gauge("strandline_named", "Named.", "Nothing.", labels=("shard",))
    families = Families([metric])
    special = 'a"b\\c\nd{}'
    families.put(metric, 1, special)
    (family,) = text_string_to_metric_families(expose(families.all()).body.decode())
    assert [sample.labels for sample in family.samples] == [{"shard": special}]


# Readiness.


HOURS = ["1970-02-11T16", "1970-02-11T17", "1970-02-11T18"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A shard that has stored two hours."""
    with closing(World(tmp_path)) as started:
        started.start()
        for hour in range(2):
            produce_everywhere(started, str(hour))
            started.pass_hours(1)
        yield started


@pytest.fixture
def deployment(world: World) -> Deployment:
    settings = Settings().dataset.model_copy(update={"grace": Duration(world.options.grace)})
    return Deployment.of(settings, world.store, MemoryTopic(world), world.clock)  # type: ignore[arg-type]  # with hooks


@pytest.fixture
def routes(deployment: Deployment) -> Iterator[tuple[Route, ...]]:
    clock = ManualClock()

    @contextmanager
    def opened() -> Iterator[Deployment]:
        yield deployment

    def opener() -> AbstractContextManager[Deployment]:
        return opened()

    with (
        closing(ReadinessWatch(opener, clock)) as watch,
        closing(Workers(2)) as workers,
    ):
        yield readiness_routes(watch, workers)


@pytest.mark.parametrize(("period", "ready"), [(HOURS[0], True), (HOURS[2], False), ("1970-02-11", False)])
def test_an_hour_or_a_day_has_the_same_json_as_the_command(
    routes: tuple[Route, ...], deployment: Deployment, period: str, ready: bool
) -> None:
    code, headers, body = get(routes, f"/api/v1/strandline/ready?period={period}")
    assert (code, headers["Content-Type"]) == (200, "application/json")
    document = orjson.loads(body)
    assert (document["status"], document["data"]["ready"]) == ("success", ready)
    assert document["data"] == json_value(check_ready(deployment, parse_period(period)))
    assert [route.access for route in routes] == [Access.READ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", 'the parameter "period" is missing'),
        ("?period=", 'the parameter "period" is missing'),
        ("?period=yesterday", "neither an hour nor a day"),
        ("?period=2026-11-15T10Z", "has a time zone"),
        ("?period=2026-13-15", "is not a valid time"),
        ("?period=" + "9" * 5_000, "neither an hour nor a day"),
    ],
)
def test_an_invalid_period_is_refused_with_the_valid_formats(
    routes: tuple[Route, ...], query: str, expected: str
) -> None:
    code, _, body = get(routes, f"/api/v1/strandline/ready{query}")
    document = orjson.loads(body)
    assert (code, document["status"], document["errorType"]) == (400, "error", "bad_data")
    assert expected in document["error"]
    assert len(body) < 500


def test_while_the_store_does_not_answer_readiness_is_unknown(world: World, routes: tuple[Route, ...]) -> None:
    world.log.reachable = False
    world.store.before = _unavailable
    code, _, body = get(routes, f"/api/v1/strandline/ready?period={HOURS[0]}")
    assert (code, orjson.loads(body)["errorType"]) == (503, "unavailable")


def _unavailable(_call: object) -> None:
    raise StoreUnavailable("the store is not there")

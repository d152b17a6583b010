"""A real Prometheus scrapes the metrics of a node and a gateway, and evaluates the alert rules."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemClock, wait_until
from strandline.node.http.server import HttpServer
from strandline.node.metrics.catalogue import CATALOGUE, GATEWAY_METRICS, NODE_METRICS
from strandline.node.metrics.gateway_families import gateway_families
from strandline.node.metrics.metric import Kind, Metric
from strandline.node.metrics.node_families import node_families
from strandline.node.metrics.routes import Collect, metrics_routes
from strandline.node.settings.http_sections import HttpSettings
from support.full_figures import NOW, PROCESS, full_front, full_gateway, full_jobs, full_readiness, full_state
from support.prometheus import PrometheusClient, prometheus
from support.promql import alert_rules

pytestmark = pytest.mark.system

RULES = Path(__file__).parents[3] / "conf" / "alerts" / "strandline.yaml"


@contextmanager
def exposing(collect: Collect) -> Iterator[str]:
    """A server with `/metrics`, in a thread. Yields its address."""
    loop = asyncio.new_event_loop()
    server = HttpServer(metrics_routes(collect), HttpSettings(), "127.0.0.1:0", max_body=1_000)
    bound = loop.run_until_complete(server.start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"{bound.host}:{bound.port}"
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(1), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@pytest.fixture(scope="module")
def scraping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusClient]:
    """A Prometheus that has scraped both."""

    def node() -> Any:
        return node_families(full_state(), 0.5, full_front(), full_readiness(), NOW, jobs=full_jobs(), monotonic=91.0)

    def gateway() -> Any:
        return gateway_families(full_gateway(), PROCESS)

    with exposing(node) as node_address, exposing(gateway) as gateway_address:

        def settings(_own: str) -> dict[str, Any]:
            jobs = {"strandline": node_address, "strandline-gateway": gateway_address}
            return {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(RULES)],
                "scrape_configs": [
                    {"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in jobs.items()
                ],
            }

        with prometheus(tmp_path_factory.mktemp("scraping") / "prometheus", settings) as client:
            assert wait_until(
                lambda: value(client, "count(up)") == value(client, "sum(up)") == "2", timeout=60, clock=SystemClock()
            )
            yield client


def value(client: PrometheusClient, query: str) -> str | None:
    """The only value in the result of a query."""
    found = client.data("/api/v1/query", query=query)["result"]
    return found[0]["value"][1] if found else None


def series_of(metric: Metric) -> str:
    return metric.name + ("_bucket" if metric.kind is Kind.HISTOGRAM else "")


def test_both_targets_are_up_with_every_metric_of_the_catalogue(scraping: PrometheusClient) -> None:
    assert value(scraping, "sum(up)") == "2"
    assert value(scraping, 'strandline_keys{shard="1"}') == "134"
    assert value(scraping, "strandline_gateway_samples_total") == "302"
    names = set(scraping.data("/api/v1/label/__name__/values"))
    assert {series_of(metric) for metric in CATALOGUE} <= names
    known = {metric.name for metric in CATALOGUE}
    ours = {name for name in names if name.startswith("strandline_")}
    assert {name for name in ours if name not in known} == {
        metric.name + suffix
        for metric in CATALOGUE
        if metric.kind is Kind.HISTOGRAM
        for suffix in ("_bucket", "_count", "_sum")
    }


@pytest.mark.parametrize(
    ("job", "metrics"), [("strandline", NODE_METRICS), ("strandline-gateway", GATEWAY_METRICS)], ids=["node", "gateway"]
)
def test_prometheus_has_the_types_and_help_texts(
    scraping: PrometheusClient, job: str, metrics: tuple[Metric, ...]
) -> None:
    targets = scraping.data("/api/v1/targets/metadata")
    found = {(target["metric"], target["help"]) for target in targets if target["target"]["job"] == job}
    # In OpenMetrics, which Prometheus requests, the name of a family has no suffix for its type.
    suffix = {Kind.COUNTER: "_total", Kind.INFO: "_info"}
    assert found == {(metric.name.removesuffix(suffix.get(metric.kind, "")), metric.meaning) for metric in metrics}


def test_the_rules_are_healthy_and_fire(scraping: PrometheusClient) -> None:
    def rules() -> list[dict[str, Any]]:
        groups = scraping.data("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def evaluated() -> bool:
        return all(rule["health"] == "ok" for rule in rules())

    assert wait_until(evaluated, timeout=60, clock=SystemClock()), rules()
    assert {rule["name"] for rule in rules()} == {alert.name for alert in alert_rules(RULES)}

    def firing() -> set[str]:
        return {alert["labels"]["alertname"] for alert in scraping.data("/api/v1/alerts")["alerts"]}

    # The failed jobs, both inactive shards, and the keys that are near their limit.
    expected = {"StrandlineReplayJobFailed", "StrandlineShardNotActive", "StrandlineSeriesLimitNear"}
    assert wait_until(lambda: expected <= firing(), timeout=60, clock=SystemClock()), firing()
    assert not firing() & {"StrandlineNodeDown", "StrandlineGatewayDown", "StrandlineShardDown"}

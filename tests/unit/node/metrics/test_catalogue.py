"""Exactly the metrics of the catalogue are exposed."""

import re
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from strandline.node.metrics.catalogue import CATALOGUE, GATEWAY_METRICS, NODE_METRICS, SECTIONS
from strandline.node.metrics.exposition import expose
from strandline.node.metrics.gateway_families import gateway_families
from strandline.node.metrics.metric import Kind, Metric
from strandline.node.metrics.node_families import node_families
from strandline.node.metrics.page import metrics_page
from strandline.node.settings import Settings
from support.full_figures import NOW, PROCESS, full_front, full_gateway, full_jobs, full_readiness, full_state

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[4]
SUFFIXES = {Kind.HISTOGRAM: ("_bucket", "_count", "_sum")}
ABBREVIATED = re.compile(r"_(ms|millis|milliseconds|minutes|hours|days|kb|mb|gb|kib|mib|percent|sec)(_|$)")


def scraped_node() -> str:
    families = node_families(full_state(), 0.5, full_front(), full_readiness(), NOW, jobs=full_jobs(), monotonic=91.0)
    return expose(families).body.decode()


def scraped_gateway() -> str:
    return expose(gateway_families(full_gateway(), PROCESS)).body.decode()


def names_in(scraped: str) -> set[str]:
    """The names of all samples, as in queries."""
    return {line.split("{")[0].split(" ")[0] for line in scraped.splitlines() if not line.startswith("#")}


def exposed_names(metric: Metric) -> set[str]:
    return {metric.name + suffix for suffix in SUFFIXES.get(metric.kind, ("",))}


@pytest.mark.parametrize(
    ("scraped", "metrics"),
    [(scraped_node(), NODE_METRICS), (scraped_gateway(), GATEWAY_METRICS)],
    ids=["node", "gateway"],
)
def test_exactly_the_metrics_of_the_catalogue_are_exposed(scraped: str, metrics: tuple[Metric, ...]) -> None:
    assert names_in(scraped) == {name for metric in metrics for name in exposed_names(metric)}


@pytest.mark.parametrize(
    ("scraped", "metrics"),
    [(scraped_node(), NODE_METRICS), (scraped_gateway(), GATEWAY_METRICS)],
    ids=["node", "gateway"],
)
def test_metrics_are_exposed_with_the_labels_the_type_and_the_meaning_of_the_catalogue(
    scraped: str, metrics: tuple[Metric, ...]
) -> None:
    families = {family.name: family for family in text_string_to_metric_families(scraped)}
    for metric in metrics:
        family = families[metric.name.removesuffix("_total")]
        assert family.type == ("gauge" if metric.kind is Kind.INFO else metric.kind.value)
        assert family.documentation == metric.meaning
        assert {frozenset(sample.labels) - {"le"} for sample in family.samples} == {frozenset(metric.labels)}


def test_nodes_and_gateways_expose_all_metrics_of_the_catalogue() -> None:
    assert {*NODE_METRICS, *GATEWAY_METRICS} == set(CATALOGUE)
    names = [metric.name for metric in CATALOGUE]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_names_follow_the_rules(metric: Metric) -> None:
    assert re.fullmatch(r"strandline(_[a-z0-9]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert metric.name.endswith("_info") == (metric.kind is Kind.INFO)
    assert not metric.name.endswith(("_bucket", "_count", "_sum", "_created"))
    assert ABBREVIATED.search(metric.name) is None
    assert all(re.fullmatch(r"[a-z]+", label) for label in metric.labels)
    assert ("timestamp" in metric.name) == metric.name.endswith("_timestamp_seconds")


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_each_metric_has_a_meaning_and_an_action(metric: Metric) -> None:
    for text in (metric.meaning, metric.action):
        assert text.endswith(".")
        assert text[0] == text[0].upper()
        assert len(text) > 15
        assert not re.search(r"[|\n]", text), "it must fit into a table"
    named = re.findall(r"strandline_[a-z_]+", metric.meaning + metric.action)
    assert set(named) <= {other.name for other in CATALOGUE}


def test_named_settings_exist() -> None:
    texts = " ".join(metric.meaning + " " + metric.action for metric in CATALOGUE)
    sections = {name: field.annotation for name, field in Settings.model_fields.items()}
    named = re.findall(rf"\b({'|'.join(sections)})\.([a-z]+_[a-z_]+|shards|restarts|concurrency)", texts)
    assert len(set(named)) > 15
    assert [setting for setting in named if setting[1] not in sections[setting[0]].model_fields] == []


@pytest.mark.parametrize("scraped", [scraped_node(), scraped_gateway()], ids=["node", "gateway"])
def test_promtool_accepts_the_metrics(scraped: str) -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=scraped, capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_the_page_of_metrics_is_that_of_the_catalogue() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert page == metrics_page(), "regenerate it: python -m strandline.node.metrics.page > docs/metrics.md"


def test_the_page_has_each_metric_once() -> None:
    page = metrics_page()
    for metric in CATALOGUE:
        assert page.count(f"| `{metric.name}` |") == 1
    assert [section.title for section in SECTIONS] == re.findall(r"^## (.*)$", page, flags=re.MULTILINE)

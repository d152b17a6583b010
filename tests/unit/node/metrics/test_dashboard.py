"""The Grafana dashboard: it uses only existing metrics, and no external sources."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from strandline.node.metrics.catalogue import CATALOGUE, SECTIONS
from support.promql import exposed, labels_matched, metric_names

pytestmark = pytest.mark.unit

FILE = Path(__file__).parents[4] / "conf" / "grafana" / "strandline.json"
DASHBOARD: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
DRAWN = [panel for panel in PANELS if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in DRAWN for target in panel["targets"]]
VARIABLES: dict[str, dict[str, Any]] = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
# Labels that Prometheus adds, and that of a histogram's buckets.
GIVEN = {"instance", "job", "le"}


def test_panels_have_unique_ids_and_a_title_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    assert all(panel["title"] for panel in PANELS)
    used_cells: set[tuple[int, int]] = set()
    for panel in PANELS:
        position = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(position["x"], position["x"] + position["w"])
            for y in range(position["y"], position["y"] + position["h"])
        }
        assert not cells & used_cells, panel["title"]
        assert position["x"] + position["w"] <= 24
        used_cells |= cells


def test_the_dashboard_has_the_rows_for_operations() -> None:
    rows = [panel["title"] for panel in PANELS if panel["type"] == "row"]
    assert rows == [
        "Overview",
        "Ingestion and lag",
        "Recovery",
        "Flush and store",
        "Index and cardinality",
        "Gateway",
        "Bulk jobs",
        "Queries",
        "Processes",
    ]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_uses_only_metrics_and_labels_of_the_catalogue(expression: str) -> None:
    assert metric_names(expression)
    assert metric_names(expression) <= exposed()
    labels = {metric.name: {*metric.labels, *GIVEN} for metric in CATALOGUE}
    for name, label in labels_matched(expression):
        assert label in labels[name.removesuffix("_bucket")]


def test_legends_name_existing_labels() -> None:
    known = {label for metric in CATALOGUE for label in metric.labels} | GIVEN
    for panel in DRAWN:
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= known
            grouped = re.search(r"(?:sum|max|count) by \(([^)]*)\)", target["expr"])
            if grouped is not None:
                assert named <= set(re.split(r",\s*", grouped[1])), target["expr"]


def test_expressions_can_be_parsed(tmp_path: Path) -> None:
    """Checked by promtool as rules, with Grafana's variables filled in."""
    rules = [
        {"record": f"panel:{place}", "expr": expression.replace("$__rate_interval", "5m")}
        for place, expression in enumerate(EXPRESSIONS)
    ]
    rules_file = tmp_path / "rules.yaml"
    rules_file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    checked = subprocess.run(
        ["promtool", "check", "rules", str(rules_file)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_all_queries_use_the_chosen_data_source() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert not re.search(r"https?://|//[a-z]", text)
    sources = {source["uid"] for panel in DRAWN for source in (panel["datasource"], *_sources(panel))}
    assert sources == {"${datasource}"}
    assert {panel["type"] for panel in DRAWN} <= {"timeseries", "stat", "state-timeline", "table"}, (
        "only panels that Grafana includes"
    )
    assert DASHBOARD["links"] == DASHBOARD["annotations"]["list"] == []
    assert DASHBOARD["id"] is None


def _sources(panel: dict[str, Any]) -> list[dict[str, Any]]:
    return [target["datasource"] for target in panel["targets"]]


def test_nodes_shards_and_gateways_can_be_chosen() -> None:
    assert set(VARIABLES) == {"datasource", "instance", "shard", "gateway"}
    assert VARIABLES["datasource"]["type"] == "datasource"
    for name in ("instance", "shard", "gateway"):
        variable = VARIABLES[name]
        definition = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
        assert definition is not None
        assert metric_names(definition[1]) <= exposed()
        assert (variable["multi"], variable["includeAll"]) == (True, True)
    used = set(re.findall(r"\$(\w+)", " ".join(EXPRESSIONS))) - {"__rate_interval"}
    assert used == {"instance", "shard", "gateway"}


def test_each_expression_uses_the_chosen_variables() -> None:
    for expression in EXPRESSIONS:
        for selector in re.findall(r"strandline_\w+(\{[^}]*\})?", expression):
            assert 'instance=~"$instance"' in selector or 'instance=~"$gateway"' in selector, expression


def test_every_section_of_the_catalogue_is_shown() -> None:
    used_metrics = set().union(*map(metric_names, EXPRESSIONS))
    for section in SECTIONS:
        assert any(name.startswith(metric.name) for metric in section.metrics for name in used_metrics), section.title

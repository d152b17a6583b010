"""The runbook has a complete entry for each alert, and names existing metrics, settings and panels."""

import json
import re
from pathlib import Path

import pytest

from strandline.node.metrics.catalogue import CATALOGUE
from strandline.node.settings import Settings
from support.promql import AlertRule, alert_rules, exposed
from support.promtool import RULES

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[4]
ALERTS = alert_rules(RULES)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_has_a_severity_a_remedy_and_a_runbook(alert: AlertRule) -> None:
    assert alert.name.startswith("Strandline")
    assert alert.severity in ("warning", "critical")
    assert re.fullmatch(r"\d+[mh]", alert.held_for)
    assert len(alert.description) > 40
    page, anchor = alert.runbook.split("#")
    headings = re.findall(r"^### (\w+)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert anchor in [heading.lower() for heading in headings]
    assert anchor == alert.name.lower()


def test_the_runbook_has_a_complete_entry_for_exactly_these_alerts() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    entries = re.split(r"^##+ ", page, flags=re.MULTILINE)
    entry_of = {entry.splitlines()[0]: entry for entry in entries if entry.startswith("Strandline")}
    assert set(entry_of) == {alert.name for alert in ALERTS}
    for alert in ALERTS:
        for part in ("**Meaning.**", "**Look.**", "**Do.**", "**If nothing is done.**"):
            assert entry_of[alert.name].count(part) == 1, (alert.name, part)
        assert f"({alert.severity})" in entry_of[alert.name], alert.name


def test_metrics_settings_and_files_that_the_runbook_names_exist() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\bstrandline_[a-z_]+[a-z]", page))
    assert len(named) > 5
    assert named <= exposed() | {metric.name for metric in CATALOGUE}
    sections = Settings.model_fields
    for section, name in re.findall(r"`(\w+)\.(\w+)(?: = [^`]*)?`", page):
        if section in sections:
            fields = sections[section].annotation
            assert fields is not None
            assert name in fields.model_fields, f"{section}.{name}"


def test_panels_that_the_runbook_names_are_on_the_dashboard() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    dashboard = json.loads((ROOT / "conf" / "grafana" / "strandline.json").read_text(encoding="utf-8"))
    titles = {panel["title"] for panel in dashboard["panels"]}
    named = {" ".join(words.split()) for words in re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", page)}
    assert len(named) > 20
    # Columns of a command's table are in italics, too, but in lower case.
    assert named <= titles

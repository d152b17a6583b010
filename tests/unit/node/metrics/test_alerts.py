"""Alert rules: they use existing metrics, and fire exactly when they should."""

import re
import subprocess
from pathlib import Path

import pytest

from strandline.node.metrics.catalogue import CATALOGUE
from support.alert_cases import CASES, always, shard
from support.promql import AlertRule, alert_rules, exposed, labels_matched, metric_names
from support.promtool import MINUTES, RULES, Series, at_instance, firing, run_promtool

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[4]


ALERTS = alert_rules(RULES)


GIVEN_BY_PROMETHEUS = {"up"}


# The beginning of promtool's report of an expression with an unexpected value.
WRONG_CASE = 'expr: "count(ALERTS{'


def test_promtool_accepts_the_rules() -> None:
    checked = subprocess.run(
        ["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    assert f"SUCCESS: {len(ALERTS)} rules found" in checked.stdout


def test_each_alert_has_a_case() -> None:
    assert {alert.name for alert in ALERTS} == set(CASES)
    assert len(ALERTS) == len(CASES)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """promtool's output for all cases. It contains the texts of firing alerts, because none are expected."""
    series: list[Series] = []
    expected = []
    for alert, case in CASES.items():
        for place, (case_series, times) in enumerate([(case.fires, 1), *((quiet, 0) for quiet in case.quiet)]):
            instance = f"{alert}-{place}"
            series += at_instance(case_series, instance)
            expected.append(firing(alert, instance, times))
    unexpected = [{"eval_time": f"{MINUTES}m", "alertname": alert, "exp_alerts": []} for alert in CASES]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": expected, "alert_rule_test": unexpected}
    code, output = run_promtool([test], tmp_path_factory.mktemp("promtool"))
    assert code == 1
    return output


def test_each_alert_fires_exactly_when_it_should(output: str) -> None:
    assert WRONG_CASE not in output


def test_a_wrong_case_fails(tmp_path: Path) -> None:
    series, expected = (
        [shard("spilled_bytes", always(0))],
        [{**firing("StrandlineSpilling", "n:9460", 1), "eval_time": "2m"}],
    )
    code, output = run_promtool([{"interval": "1m", "input_series": series, "promql_expr_test": expected}], tmp_path)
    assert (code, WRONG_CASE in output) == (1, True)


def test_the_texts_of_alerts_can_be_rendered(output: str) -> None:
    assert set(re.findall(r'alertname="(\w+)"', output)) == set(CASES)
    assert len(re.findall(r'summary="(?:[^"\\]|\\.)+"', output)) >= len(CASES)
    assert "error expanding template" not in output
    assert not re.search(r"\{\{|no value|%!", output)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_uses_only_metrics_and_labels_of_the_catalogue(alert: AlertRule) -> None:
    assert metric_names(alert.expression) <= exposed() | GIVEN_BY_PROMETHEUS
    labels = {metric.name: metric.labels for metric in CATALOGUE}
    for name, label in labels_matched(alert.expression):
        assert label in labels[name]


def test_names_are_found_in_expressions() -> None:
    assert metric_names('sum by (job, le) (rate(a_total{x="b{}"}[5m])) > on (job) 0.5 * max(c) and d offset 1h') == {
        "a_total",
        "c",
        "d",
    }
    assert metric_names("time() - e") == {"e"}

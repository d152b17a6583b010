"""Alert rules: they use existing metrics, fire exactly when they should, and have a runbook."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.node.metrics.catalogue import CATALOGUE
from strandline.node.settings import Settings
from support.promql import AlertRule, alert_rules, exposed, labels_matched, metric_names
from support.promtool import MINUTES, RULES, Series, at_instance, firing, run_promtool

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[4]
ALERTS = alert_rules(RULES)
GIVEN_BY_PROMETHEUS = {"up"}
# The beginning of promtool's report of an expression with an unexpected value.
WRONG_CASE = 'expr: "count(ALERTS{'


def shard(name: str, values: str, **labels: str) -> Series:
    return of("strandline_" + name, values, shard="0", **labels)


def of(name: str, values: str, job: str = "strandline", **labels: str) -> Series:
    all_labels = {"job": job, "instance": "n:9460", **labels}
    inside = ",".join(f'{label}="{value}"' for label, value in all_labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}


def gateway(name: str, values: str, **labels: str) -> Series:
    return of("strandline_gateway_" + name, values, job="strandline-gateway", **labels)


def always(value: float) -> str:
    return f"{value}x{MINUTES}"


def rising(step: float = 1) -> str:
    return f"0+{step}x{MINUTES}"


def durations(name: str, slow: str, **labels: str) -> Sequence[Series]:
    """A histogram with 95 fast requests per minute, and `slow` requests of 30 to 60 seconds."""
    return (
        of(name, rising(95), le="1.0", **labels),
        of(name, rising(95), le="30.0", **labels),
        of(name, slow, le="60.0", **labels),
        of(name, slow, le="+Inf", **labels),
    )


@dataclass(frozen=True)
class Case:
    """Values for which an alert fires, and close ones for which it must not."""

    fires: Sequence[Series]
    quiet: Sequence[Sequence[Series]]


HOUR, DAY = always(3_600), always(86_400)
STUCK = shard("phase_progress_ratio", always(0.3))
INTERVAL = "strandline_dataset_flush_interval_seconds"
HTTP, WRITES = "strandline_http_request_duration_seconds_bucket", "strandline_gateway_request_duration_seconds_bucket"
CASES: Mapping[str, Case] = {
    "StrandlineNodeDown": Case([of("up", always(0))], [[of("up", always(1))], [of("up", always(0), job="other")]]),
    "StrandlineNodeWithoutShards": Case(
        [of("strandline_shards", always(0))],
        [[of("strandline_shards", always(1))], [of("strandline_shards", f"2x{MINUTES - 5} 0x5")]],
    ),
    "StrandlineShardDown": Case(
        [shard("shard_process_state", always(1), state="down")],
        [
            [
                shard("shard_process_state", always(0), state="down"),
                shard("shard_process_state", always(1), state="waiting"),
            ]
        ],
    ),
    "StrandlineShardWaiting": Case(
        [shard("shard_process_state", always(1), state="waiting")],
        [
            [shard("shard_process_state", f"0x{MINUTES - 3} 1x3", state="waiting")],
            [shard("shard_process_state", always(1), state="down")],
        ],
    ),
    "StrandlineShardRestarting": Case(
        [shard("shard_restarts_total", f"0x{MINUTES - 10} 1+1x10")],
        [[shard("shard_restarts_total", f"0x{MINUTES - 10} 1x10")], [shard("shard_restarts_total", always(50))]],
    ),
    "StrandlineProcessRestarting": Case(
        [of("strandline_process_restarts_total", f"0x{MINUTES - 10} 1+1x10", process="front")],
        [
            [of("strandline_process_restarts_total", f"0x{MINUTES - 10} 1x10", process="front")],
            [of("strandline_process_restarts_total", always(50), process="worker")],
        ],
    ),
    "StrandlineWorkerDown": Case(
        [of("strandline_process_state", always(1), process="worker", state="down")],
        [
            [
                of("strandline_process_state", always(0), process="worker", state="down"),
                of("strandline_process_state", always(1), process="worker", state="waiting"),
            ]
        ],
    ),
    "StrandlineShardNotActive": Case(
        [shard("phase", always(0), phase="active"), shard("shard_up", always(1))],
        [
            [shard("phase", always(1), phase="active"), shard("shard_up", always(1))],
            [shard("phase", always(0), phase="active"), shard("shard_up", always(0))],
            [shard("phase", f"1x{MINUTES - 20} 0x20", phase="active"), shard("shard_up", always(1))],
        ],
    ),
    "StrandlineRecoveryStuck": Case(
        [STUCK, shard("phase", always(1), phase="replaying"), shard("phase", always(0), phase="recovering-index")],
        [
            [shard("phase_progress_ratio", rising(0.001)), shard("phase", always(1), phase="replaying")],
            [STUCK, shard("phase", always(0), phase="replaying"), shard("phase", always(1), phase="active")],
            [STUCK, shard("phase", f"0x{MINUTES - 5} 1x5", phase="replaying")],
        ],
    ),
    "StrandlineReplayJobFailed": Case(
        [shard("replay_jobs", always(1), state="failed")],
        [[shard("replay_jobs", always(0), state="failed"), shard("replay_jobs", always(9), state="pending")]],
    ),
    "StrandlineLagging": Case(
        [shard("lag_seconds", always(301))],
        [[shard("lag_seconds", always(299))], [shard("lag_seconds", f"0x{MINUTES - 5} 900x5")]],
    ),
    "StrandlineTransactionOpen": Case(
        [shard("open_transaction_seconds", always(31))],
        [[shard("open_transaction_seconds", always(2))], [shard("open_transaction_seconds", always(0))]],
    ),
    "StrandlineKafkaUnreachable": Case(
        [shard("log_retries_total", rising())],
        [[shard("log_retries_total", always(7))], [shard("log_retries_total", f"7x{MINUTES - 3} 8x3")]],
    ),
    "StrandlineClockWrong": Case(
        [shard("clock_difference_seconds", always(-61), clock="node")],
        [
            [shard("clock_difference_seconds", always(-59), clock="node")],
            [shard("clock_difference_seconds", always(59), clock="store")],
        ],
    ),
    "StrandlineDeadLetters": Case(
        [shard("dead_letters_total", f"4x{MINUTES - 5} 5x5")], [[shard("dead_letters_total", always(4))]]
    ),
    "StrandlineDeadLettersLost": Case(
        [shard("lost_dead_letters_total", f"4x{MINUTES - 5} 5x5")], [[shard("lost_dead_letters_total", always(4))]]
    ),
    "StrandlineSeriesRefused": Case(
        [shard("refused_rows_total", rising())], [[shard("refused_rows_total", always(9))]]
    ),
    "StrandlineSeriesLimitNear": Case(
        [shard("keys", always(91)), shard("keys_limit", always(100))],
        [[shard("keys", always(89)), shard("keys_limit", always(100))]],
    ),
    "StrandlineChurn": Case(
        [shard("new_keys_total", rising(200)), shard("live_keys", always(20_000))],
        [
            [shard("new_keys_total", rising(100)), shard("live_keys", always(20_000))],
            # High churn is normal for a small index.
            [shard("new_keys_total", rising(200)), shard("live_keys", always(9_000))],
        ],
    ),
    "StrandlineSamplesDropped": Case(
        [shard("dropped_samples_total", rising(), reason="too-old")],
        [[shard("dropped_samples_total", always(5), reason="too-old")]],
    ),
    "StrandlineEntriesSkipped": Case(
        [gateway("skipped_entries_total", rising(), kind="histogram")],
        [
            [gateway("skipped_entries_total", always(9), kind="histogram")],
            [shard("skipped_entries_total", always(9), kind="metadata")],
            [shard("skipped_entries_total", f"0x{MINUTES - 5} 0+1x5", kind="exemplar")],
        ],
    ),
    "StrandlineSeriesDropped": Case(
        [shard("dropped_series_total", rising(), reason="no-labels")],
        [[shard("dropped_series_total", always(5), reason="no-labels")]],
    ),
    "StrandlineRetentionMarginCritical": Case(
        [shard("retention_margin_seconds", always(8_000)), shard("kafka_retention_seconds", DAY)],
        [[shard("retention_margin_seconds", always(9_000)), shard("kafka_retention_seconds", DAY)], []],
    ),
    "StrandlineRetentionMarginLow": Case(
        [shard("retention_margin_seconds", always(43_000)), shard("kafka_retention_seconds", DAY)],
        [[shard("retention_margin_seconds", always(43_300)), shard("kafka_retention_seconds", DAY)]],
    ),
    "StrandlineStoreNotAnswering": Case(
        [shard("store_unanswered_seconds", rising(60))],
        [[shard("store_unanswered_seconds", always(29))], [shard("store_unanswered_seconds", f"0x{MINUTES - 1} 60x1")]],
    ),
    "StrandlineStoreFailing": Case(
        [shard("store_retries_total", rising())],
        [[shard("store_retries_total", always(9))], [shard("store_retries_total", rising(0.2))]],
    ),
    "StrandlineFlushBehind": Case(
        [shard("oldest_unstored_bucket_age_seconds", always(7_300)), shard("flush_interval_seconds", HOUR)],
        # A flush is spread over the interval: a bucket is stored by 0.8 of the next one.
        [[shard("oldest_unstored_bucket_age_seconds", always(6_600)), shard("flush_interval_seconds", HOUR)]],
    ),
    "StrandlineSpilling": Case(
        [shard("spilled_bytes", always(1))],
        [[shard("spilled_bytes", always(0))], [shard("spilled_bytes", f"0x{MINUTES - 20} 9x20")]],
    ),
    "StrandlineSpillNearlyFull": Case(
        [shard("spilled_bytes", always(81)), shard("spill_limit_bytes", always(100))],
        [[shard("spilled_bytes", always(79)), shard("spill_limit_bytes", always(100))]],
    ),
    "StrandlineIndexRefreshSlow": Case(
        [shard("refresh_lag_seconds", always(31))], [[shard("refresh_lag_seconds", always(2))]]
    ),
    # The test's clock begins at 0, and at the end three hours and twenty minutes have passed.
    "StrandlineHoursLate": Case(
        [of("strandline_newest_ready_hour_end_timestamp_seconds", always(0)), of(INTERVAL, HOUR)],
        [
            [of("strandline_newest_ready_hour_end_timestamp_seconds", always(2 * 3_600)), of(INTERVAL, HOUR)],
            [of("strandline_newest_ready_hour_end_timestamp_seconds", always(0)), of(INTERVAL, DAY)],
        ],
    ),
    "StrandlinePartitionNotStored": Case(
        [of("strandline_partition_behind_seconds", always(14_500), partition="3"), of(INTERVAL, HOUR)],
        [
            [of("strandline_partition_behind_seconds", always(14_300), partition="3"), of(INTERVAL, HOUR)],
            [of("strandline_partition_behind_seconds", always(14_500), partition="3"), of(INTERVAL, DAY)],
        ],
    ),
    "StrandlineDeletionNear": Case(
        [
            of("strandline_partition_behind_seconds", always(65_000), partition="3"),
            of("strandline_topic_retention_seconds", DAY),
        ],
        [
            [
                of("strandline_partition_behind_seconds", always(64_000), partition="3"),
                of("strandline_topic_retention_seconds", DAY),
            ],
            # Kafka's retention is unlimited.
            [of("strandline_partition_behind_seconds", always(64_000), partition="3")],
        ],
    ),
    "StrandlinePartitionUnread": Case(
        [of("strandline_unread_partitions", always(1))], [[of("strandline_unread_partitions", always(0))]]
    ),
    "StrandlineReadinessUnknown": Case(
        [of("strandline_readiness_age_seconds", always(121))], [[of("strandline_readiness_age_seconds", always(16))]]
    ),
    "StrandlineJobBroken": Case(
        [of("strandline_bulk_jobs", always(1), kind="import", state="broken")],
        [
            [
                of("strandline_bulk_jobs", always(0), kind="import", state="broken"),
                of("strandline_bulk_jobs", always(3), kind="import", state="paused"),
            ]
        ],
    ),
    "StrandlineJobFailed": Case(
        [of("strandline_bulk_jobs", always(1), kind="import", state="failed")],
        [
            [
                of("strandline_bulk_jobs", always(0), kind="import", state="failed"),
                of("strandline_bulk_jobs", always(3), kind="import", state="cancelled"),
            ]
        ],
    ),
    "StrandlineJobExpiring": Case(
        [of("strandline_bulk_expiry_seconds", always(86_399), kind="import")],
        [[of("strandline_bulk_expiry_seconds", always(86_400), kind="import")]],
    ),
    "StrandlineJobStalled": Case(
        [of("strandline_bulk_stalled_seconds", rising(60), kind="import")],
        [
            [of("strandline_bulk_stalled_seconds", always(900), kind="import")],
            # A part whose worker was killed, and which another one has leased.
            [of("strandline_bulk_stalled_seconds", f"0x{MINUTES - 4} 1000x4", kind="import")],
        ],
    ),
    "StrandlineQueriesFailing": Case(
        [
            of("strandline_http_requests_total", rising(6), handler="/api/v1/query", code="503"),
            of("strandline_http_requests_total", rising(94), handler="/api/v1/series", code="200"),
        ],
        [
            [
                of("strandline_http_requests_total", rising(4), handler="/api/v1/query", code="503"),
                of("strandline_http_requests_total", rising(96), handler="/api/v1/series", code="200"),
            ],
            [of("strandline_http_requests_total", rising(9), handler="/api/v1/query", code="422")],
            [of("strandline_http_requests_total", rising(9), handler="/-/ready", code="503")],
            # Remote read refuses partial answers.
            [
                of("strandline_http_requests_total", rising(9), handler="/api/v1/read", code="503"),
                of("strandline_http_requests_total", rising(9), handler="/api/v1/query", code="200"),
            ],
            [of("strandline_http_requests_total", always(9), handler="/api/v1/query", code="500")],
        ],
    ),
    "StrandlineUnauthorized": Case(
        [of("strandline_http_requests_total", rising(2), handler="/api/v1/query", code="401")],
        [
            [of("strandline_http_requests_total", always(500), handler="/api/v1/query", code="401")],
            [of("strandline_http_requests_total", rising(1), handler="/api/v1/query", code="403")],
            [of("strandline_http_requests_total", rising(50), handler="/api/v1/query", code="404")],
        ],
    ),
    "StrandlineReadsRefused": Case(
        [
            of("strandline_http_requests_total", rising(6), handler="/api/v1/read", code="503"),
            of("strandline_http_requests_total", rising(94), handler="/api/v1/read", code="200"),
        ],
        [
            [of("strandline_http_requests_total", rising(9), handler="/api/v1/read", code="200")],
            [of("strandline_http_requests_total", rising(9), handler="/api/v1/query", code="503")],
            # A recovery takes a quarter of an hour.
            [of("strandline_http_requests_total", f"0x{MINUTES - 15} 0+9x15", handler="/api/v1/read", code="503")],
        ],
    ),
    "StrandlineQueriesSlow": Case(
        durations(HTTP, rising(100), handler="/a"), [durations(HTTP, rising(95), handler="/a")]
    ),
    "StrandlineGatewayDown": Case(
        [of("up", always(0), job="strandline-gateway")], [[of("up", always(1), job="strandline-gateway")]]
    ),
    "StrandlineGatewayNotWriting": Case(
        [
            gateway("requests_total", rising(2), outcome="put-off"),
            gateway("requests_total", rising(8), outcome="written"),
        ],
        [
            [
                gateway("requests_total", rising(1), outcome="put-off"),
                gateway("requests_total", rising(99), outcome="written"),
            ],
            [gateway("requests_total", rising(5), outcome="refused")],
        ],
    ),
    "StrandlineGatewayClockDiffers": Case(
        [gateway("clock_difference_seconds", always(-61))],
        [
            [gateway("clock_difference_seconds", always(60))],
            [gateway("clock_difference_seconds", f"900x{MINUTES - 20} 0x20")],
        ],
    ),
    "StrandlineRemoteWrite2": Case(
        # Within two minutes of the first request.
        [gateway("requests_total", f"0x{MINUTES - 1} 1", outcome="remote-write-2")],
        [
            [gateway("requests_total", always(7), outcome="remote-write-2")],
            [gateway("requests_total", rising(), outcome="unsupported")],
        ],
    ),
    "StrandlineGatewayRefusing": Case(
        [gateway("requests_total", rising(1), outcome="too-large")],
        [
            [gateway("requests_total", always(5), outcome="too-large")],
            [gateway("requests_total", rising(), outcome="put-off")],
        ],
    ),
    "StrandlineGatewayUnauthorized": Case(
        # A sender with one request per minute, all of which are lost.
        [gateway("unauthorized_requests_total", rising(1), code="401")],
        [
            [gateway("unauthorized_requests_total", always(500), code="401")],
            # A single unauthorized request.
            [gateway("unauthorized_requests_total", f"0x{MINUTES - 4} 1x4", code="403")],
        ],
    ),
    "StrandlineGatewayNearlyFull": Case(
        [gateway("in_flight_bytes", always(81)), gateway("in_flight_limit_bytes", always(100))],
        [[gateway("in_flight_bytes", always(79)), gateway("in_flight_limit_bytes", always(100))]],
    ),
    "StrandlineGatewaySlow": Case(
        durations(WRITES, rising(100)),
        [durations(WRITES, rising(95))],
    ),
}


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
def test_an_alert_uses_only_metrics_of_the_catalogue_with_labels_that_they_have(alert: AlertRule) -> None:
    assert metric_names(alert.expression) <= exposed() | GIVEN_BY_PROMETHEUS
    labels = {metric.name: metric.labels for metric in CATALOGUE}
    for name, label in labels_matched(alert.expression):
        assert label in labels[name]


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


def test_names_are_found_in_expressions() -> None:
    assert metric_names('sum by (job, le) (rate(a_total{x="b{}"}[5m])) > on (job) 0.5 * max(c) and d offset 1h') == {
        "a_total",
        "c",
        "d",
    }
    assert metric_names("time() - e") == {"e"}

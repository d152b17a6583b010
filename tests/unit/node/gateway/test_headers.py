"""Checking the headers of requests."""

import pytest

from strandline.node.gateway.figures import Outcome
from strandline.node.gateway.headers import check_headers
from strandline.node.gateway.rejections import WriteRejected

pytestmark = pytest.mark.unit

GOOD = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


def without(name: str) -> dict[str, str]:
    return {key: value for key, value in GOOD.items() if key != name}


@pytest.mark.parametrize(
    "headers",
    [
        GOOD,
        without("Content-Type"),
        without("X-Prometheus-Remote-Write-Version"),
        GOOD | {"X-Prometheus-Remote-Write-Version": "0.1.17"},
        GOOD | {"Content-Encoding": "Snappy"},
        GOOD | {"Content-Type": "application/x-protobuf; proto=prometheus.WriteRequest"},
        GOOD | {"Content-Type": 'Application/X-Protobuf;proto="prometheus.WriteRequest";charset=utf-8'},
    ],
)
def test_remote_write_1_is_understood(headers: dict[str, str]) -> None:
    check_headers(headers)


@pytest.mark.parametrize(
    ("headers", "remedy"),
    [
        (without("Content-Encoding"), "snappy"),
        (GOOD | {"Content-Encoding": "gzip"}, "snappy"),
        (GOOD | {"Content-Encoding": "zstd"}, "snappy"),
        (GOOD | {"Content-Encoding": "snappy, gzip"}, "snappy"),
        (GOOD | {"Content-Type": "application/json"}, "application/x-protobuf"),
        (GOOD | {"Content-Type": "application/x-protobuf;proto=another.Request"}, "remote write 1.0"),
        (GOOD | {"X-Prometheus-Remote-Write-Version": "0.10.0"}, "0.1.0"),
    ],
)
def test_other_content_types_are_unsupported_so_that_senders_fall_back(headers: dict[str, str], remedy: str) -> None:
    with pytest.raises(WriteRejected) as refusal:
        check_headers(headers)
    assert (refusal.value.status, refusal.value.outcome) == (415, Outcome.UNSUPPORTED)
    assert remedy in refusal.value.remedy


@pytest.mark.parametrize(
    "headers",
    [
        # As Prometheus 3 sends it.
        {
            "Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
            "Content-Encoding": "snappy",
            "X-Prometheus-Remote-Write-Version": "2.0.0",
        },
        GOOD | {"Content-Type": 'application/x-protobuf; proto="io.prometheus.write.v2.Request"'},
        GOOD | {"X-Prometheus-Remote-Write-Version": "2.0.0"},
        GOOD | {"X-Prometheus-Remote-Write-Version": "2.0.0", "Content-Encoding": "zstd"},
    ],
)
def test_remote_write_2_has_a_separate_outcome_since_prometheus_does_not_fall_back(headers: dict[str, str]) -> None:
    with pytest.raises(WriteRejected) as refusal:
        check_headers(headers)
    assert (refusal.value.status, refusal.value.outcome) == (415, Outcome.REMOTE_WRITE_2)
    assert "protobuf_message: prometheus.WriteRequest" in refusal.value.remedy


def test_a_long_header_makes_a_short_answer() -> None:
    with pytest.raises(WriteRejected) as refusal:
        check_headers(GOOD | {"Content-Encoding": "x" * 10_000})
    assert len(refusal.value.message) < 120

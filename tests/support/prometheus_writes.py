"""What a self-scraping Prometheus has written through a gateway, compared with what it returns itself."""

import struct
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from support.gateway_topics import GatewayTopic
from support.gateways import decoded
from support.prometheus import PrometheusClient
from support.remote_write import WriteRequest
from support.splitting import partition_of

Labels = frozenset[tuple[str, str]]
Samples = dict[int, float]


def writing_to(url: str) -> Callable[[str], dict[str, Any]]:
    """Settings of a Prometheus that scrapes itself and writes to this URL."""
    return lambda address: {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [{"job_name": "itself", "static_configs": [{"targets": [address]}]}],
        "remote_write": [
            {
                "url": f"{url}/api/v1/write",
                "remote_timeout": "30s",
                "queue_config": {"batch_send_deadline": "500ms", "min_backoff": "50ms", "max_backoff": "500ms"},
                "metadata_config": {"send_interval": "1s"},
            }
        ],
    }


def samples_of(writer: PrometheusClient, selector: str) -> dict[Labels, Samples]:
    """Its own samples of the last minutes."""
    return {
        frozenset(series["metric"].items()): {round(time * 1000): float(value) for time, value in series["values"]}
        for series in writer.data("/api/v1/query", query=f"{selector}[10m]")["result"]
    }


def labels_of(encoded: bytes) -> Labels:
    """Part keys, read by the official implementation."""
    length = b""
    rest = len(encoded)
    while rest >= 0x80:
        length += bytes([rest & 0x7F | 0x80])
        rest >>= 7
    (series,) = WriteRequest.FromString(b"\x0a" + length + bytes([rest]) + encoded).timeseries
    return frozenset((label.name, label.value) for label in series.labels)


def in_topic(topic: GatewayTopic) -> dict[Labels, Samples]:
    found: dict[Labels, Samples] = defaultdict(dict)
    for partition, labels, samples in decoded(topic.read()):
        assert partition == partition_of(labels, 3)
        for time, value in samples:
            found[labels_of(labels)][time] = struct.unpack("<d", value)[0]
    return found


METRICS = (
    "prometheus_build_info",
    "process_cpu_seconds_total",
    "prometheus_tsdb_head_series",
    "scrape_duration_seconds",
)


def compare(topic: GatewayTopic, prometheus: PrometheusClient, least: int) -> None:
    """Assert that every sample up to the newest one of its series is in the topic, and that there are enough."""
    written = in_topic(topic)
    for metric in METRICS:
        scraped = samples_of(prometheus, metric)
        assert scraped
        for labels, samples in scraped.items():
            own = written[labels]
            assert len(own) >= least
            assert own == {time: value for time, value in samples.items() if time <= max(own)}


def scrapes_in(topic: GatewayTopic) -> int:
    """The number of scrapes of each metric in the topic: metrics are in different requests and partitions."""
    written = in_topic(topic)
    return min(
        max((len(samples) for labels, samples in written.items() if ("__name__", metric) in labels), default=0)
        for metric in METRICS
    )

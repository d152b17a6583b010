"""The data of the demonstration: a fleet of hosts, scraped a few times."""

from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

METRICS = ("node_cpu_seconds_total", "node_load1", "node_memory_free_bytes", "node_network_receive_bytes_total")
ZONES = ("a", "b", "c")


def series_labels(number: int) -> list[tuple[str, str]]:
    """The labels of one series, sorted as the protocol asks."""
    host = number // len(METRICS)
    return [
        ("__name__", METRICS[number % len(METRICS)]),
        ("host", f"host-{host:04}"),
        ("job", "node"),
        ("zone", ZONES[host % len(ZONES)]),
    ]


def scrape(first_series: int, count: int, time_ms: int) -> bytes:
    """One record: a sample of each of `count` series at one time, as a client would send it."""
    return compress(
        encode_request(
            Series(series_labels(number), [(time_ms, float(number))])
            for number in range(first_series, first_series + count)
        )
    )

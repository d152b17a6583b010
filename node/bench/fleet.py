"""Generated series of a fleet of hosts. Each has ten labels, with values that 1, 1,000, 10,000 or all series share."""

from collections.abc import Iterator

from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

SERIES_A_RECORD = 2_000
SHARED_BY_1K, SHARED_BY_10K = 1_000, 10_000


def _label(name: str, value: str) -> bytes:
    """One encoded label. Requests are concatenated from these, because encoding a million series would take long."""
    request = encode_request([Series([(name, value)], [])])
    return request[2:]


def _sample(time: int) -> bytes:
    return encode_request([Series([], [(time, 1.0)])])[2:]


def labels_of(number: int) -> list[tuple[str, str]]:
    """The labels of series `number`, sorted."""
    return [
        ("__name__", f"fleet_metric_{number % 500}_total"),
        ("cluster", f"cluster-{number % 4}"),
        ("env", "production"),
        ("instance", f"host-{number // SHARED_BY_1K:05}.example.com:9100"),
        ("job", "node-exporter"),
        ("method", ("GET", "PUT", "POST", "HEAD", "DELETE")[number % 5]),
        ("namespace", f"namespace-{number // SHARED_BY_10K:04}"),
        ("pod", f"pod-{number:08x}-{(number * 2_654_435_761) % 2**32:08x}"),
        ("region", f"eu-west-{number % 3}"),
        ("status", f"{200 + number % 8}"),
    ]


def records(series: int, time: int) -> Iterator[bytes]:
    """Remote-write bodies with one sample of each series, 2,000 series a body."""
    return (compress(request) for request, _ in requests(series, time))


def requests(series: int, time: int) -> Iterator[tuple[bytes, int]]:
    """The same requests uncompressed, each with its number of series."""
    sample = _sample(time)
    fragments: dict[tuple[str, str], bytes] = {}
    for first in range(0, series, SERIES_A_RECORD):
        parts = []
        for number in range(first, min(first + SERIES_A_RECORD, series)):
            encoded = []
            for label in labels_of(number):
                fragment = fragments.get(label)
                if fragment is None:
                    fragment = _label(*label)
                    if label[0] != "pod":  # Unique for each series.
                        fragments[label] = fragment
                encoded.append(fragment)
            body = b"".join(encoded) + sample
            # Field 1, and the length as a varint of two bytes: a series has between 128 and 16,383 bytes.
            parts.append(bytes((0x0A, len(body) & 0x7F | 0x80, len(body) >> 7)) + body)
        yield b"".join(parts), len(parts)

"""The fleet for lookups: its series with two additional labels, one with ten values and one with ten thousand. The
bodies are remote-write requests with one sample per series.
"""

from collections.abc import Iterator

from strandline.node.bench.fleet import SERIES_A_RECORD, labels_of
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress

RACKS, SLOTS = 10, 10_000


def wider_labels_of(number: int) -> list[tuple[str, str]]:
    """The labels of series `number`, sorted."""
    more = [("rack", f"rack-{number % RACKS}"), ("slot", f"slot-{number * 7 % SLOTS:04}")]
    return sorted(labels_of(number) + more)


def bodies(series: int, time: int) -> Iterator[bytes]:
    """Compressed requests of 2,000 series each."""
    # Encoded labels are cached, unless they are unique for each series.
    encoded: dict[tuple[str, str], bytes] = {}
    sample = encode_request([Series([], [(time, 1.0)])])[2:]
    for first in range(0, series, SERIES_A_RECORD):
        parts = []
        for number in range(first, min(first + SERIES_A_RECORD, series)):
            body = b"".join(_label(label, encoded) for label in wider_labels_of(number)) + sample
            # Field 1, and the length as a varint of two bytes: a series has between 128 and 16,383 bytes.
            parts.append(bytes((0x0A, len(body) & 0x7F | 0x80, len(body) >> 7)) + body)
        yield compress(b"".join(parts))


def _label(label: tuple[str, str], encoded: dict[tuple[str, str], bytes]) -> bytes:
    found = encoded.get(label)
    if found is None:
        found = encode_request([Series([label], [])])[2:]
        if label[0] != "pod":
            encoded[label] = found
    return found

"""Encoding of remote-write 1.0 requests: values to protobuf bytes.

The message is small: a request holds series, a series holds labels and samples.

    WriteRequest { repeated TimeSeries timeseries = 1; }
    TimeSeries   { repeated Label labels = 1; repeated Sample samples = 2; }
    Label        { string name = 1; string value = 2; }
    Sample       { double value = 1; int64 timestamp = 2; }
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FIELD_1_BYTES = 0x0A
FIELD_2_BYTES = 0x12
FIELD_1_DOUBLE = 0x09
FIELD_2_VARINT = 0x10


@dataclass(frozen=True, slots=True)
class Series:
    """One series of a request: labels as (name, value) pairs, samples as (milliseconds, value)."""

    labels: Sequence[tuple[str, str]]
    samples: Sequence[tuple[int, float]]


def encode_request(series: Iterable[Series]) -> bytes:
    """A `WriteRequest`, not compressed. Labels and samples stay in the given order."""
    return b"".join(field(FIELD_1_BYTES, _encode_series(one)) for one in series)


def _encode_series(series: Series) -> bytes:
    labels = [
        field(FIELD_1_BYTES, field(FIELD_1_BYTES, name.encode()) + field(FIELD_2_BYTES, value.encode()))
        for name, value in series.labels
    ]
    samples = [
        field(FIELD_2_BYTES, struct.pack("<Bd", FIELD_1_DOUBLE, value) + bytes([FIELD_2_VARINT]) + varint(time))
        for time, value in series.samples
    ]
    return b"".join(labels + samples)


def field(tag: int, content: bytes) -> bytes:
    """A field of bytes: tag, length and content."""
    return bytes([tag]) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """A number as a protobuf varint: groups of seven bits."""
    if 0 <= number < 0x80:
        return bytes((number,))
    rest = number & 0xFFFF_FFFF_FFFF_FFFF  # A negative int64 is encoded as its two's complement.
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)

"""Records that exceed the initial arrays after some of their labels were overwritten in place.

Such a record must not be decoded again from its start, because its bytes have changed.
"""

import random
import struct

import pytest

from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import compress
from support.decoding import compare

pytestmark = pytest.mark.simulation

SAMPLE = b"\x12\x0b" + struct.pack("<Bd", 0x09, 2.5) + b"\x10\x07"
MIN_SAMPLE_BYTES = b"\x12\x00"


def label(name: bytes, value: bytes) -> bytes:
    content = b"\x0a" + bytes([len(name)]) + name + b"\x12" + bytes([len(value)]) + value
    return b"\x0a" + bytes([len(content)]) + content


def series(*fields: bytes) -> bytes:
    content = b"".join(fields)
    return b"\x0a" + bytes([len(content) & 0x7F | 0x80, len(content) >> 7]) + content


# How the canonical form of each series overwrites it.
UNUSUAL = {
    "over a sample": series(SAMPLE, label(b"a", b"123456")),
    "over a sample and a label": series(SAMPLE, label(b"b", b"2"), label(b"a", b"1")),
    "shorter": series(label(b"c", b""), label(b"b", b"2"), label(b"a", b"1"), SAMPLE),
    "just as long": series(label(b"b", b"2"), label(b"a", b"1"), SAMPLE),
}
unusual_series = pytest.mark.parametrize("unusual", UNUSUAL.values(), ids=UNUSUAL)


@unusual_series
@pytest.mark.parametrize("samples", [0, 1, 15, 16, 40, 1000])
@pytest.mark.parametrize("more_series", [0, 1, 16, 300])
def test_a_record_that_exceeds_the_arrays_after_an_unusual_series_is_decoded_unchanged(
    unusual: bytes, samples: int, more_series: int
) -> None:
    message = unusual + series(label(b"z", b"1"), MIN_SAMPLE_BYTES * samples) + series(label(b"y", b"1")) * more_series
    # Also if the previous record has used up the arrays.
    messages = [series(label(b"x", b"1"), MIN_SAMPLE_BYTES * 10), message, message]
    compare(decode_batch([compress(message) for message in messages], Limits()), messages, Limits())


@unusual_series
def test_a_record_that_exceeds_only_the_array_of_series_is_decoded_unchanged(unusual: bytes) -> None:
    empty = series(label(b"y", b"1"))
    # Some of these numbers of preceding series leave room for some more series, and for many samples.
    for before in range(0, 600, 10):
        messages = [empty * before, unusual + empty * 100]
        compare(decode_batch([compress(message) for message in messages], Limits()), messages, Limits())


@pytest.mark.parametrize("seed", range(200))
def test_any_mixture_of_usual_and_unusual_series_is_decoded_unchanged(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 # repeatable on purpose
    messages = [
        b"".join(
            rng.choice([*UNUSUAL.values(), series(label(b"z", b"1"), MIN_SAMPLE_BYTES * rng.randrange(200))])
            for _ in range(rng.randrange(1, 30))
        )
        for _ in range(rng.randrange(1, 4))
    ]
    compare(decode_batch([compress(message) for message in messages], Limits()), messages, Limits())

"""A hundred thousand damaged requests: each is refused as decoding refuses it, or its parts equal the request."""

import random

import pytest

from strandline.wire.decode import Limits
from strandline.wire.encoding import Series, encode_request
from support.splitting import compare_splits

pytestmark = pytest.mark.simulation

INPUTS = 100_000
BATCH = 2_000
LIMITS = Limits(labels=4, label_name=20, label_value=140)

EXEMPLAR, HISTOGRAM, UNKNOWN = b"\x1a\x02\x08\x01", b"\x22\x00", b"\x28\x96\x01"
NAMES = ["__name__", "a", "b", "job", "é", "", "n" * 21]
VALUES = ["1", "up", "", "x" * 130, "x" * 141, "€"]


def series_content(rng: random.Random) -> bytes:
    """The fields of a series: labels and samples as clients send them, or in any order with other fields in between."""
    labels = [(rng.choice(NAMES), rng.choice(VALUES)) for _ in range(rng.randrange(5))]
    times = [rng.getrandbits(rng.choice([6, 40, 63])) for _ in range(rng.randrange(4))]
    if rng.random() < 0.5:
        labels.sort()
        return content(Series(labels, [(time, rng.random()) for time in times]))
    fields = [content(Series([label], [])) for label in labels]
    fields += [content(Series([], [(time, rng.random())])) for time in times]
    fields += rng.sample([EXEMPLAR, HISTOGRAM, UNKNOWN], rng.randrange(4))
    rng.shuffle(fields)
    return b"".join(fields)


def content(series: Series) -> bytes:
    """A series without the tag and length that a request puts before it."""
    request = encode_request([series])
    return request[next(at for at in range(1, len(request)) if request[at] < 0x80) + 1 :]


def varint(number: int) -> bytes:
    return bytes([number]) if number < 0x80 else bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def request(rng: random.Random) -> bytes:
    parts = []
    for _ in range(rng.randrange(6)):
        inner = series_content(rng)
        parts.append(rng.choice([b"", b"", b"", EXEMPLAR, UNKNOWN]) + b"\x0a" + varint(len(inner)) + inner)
    return b"".join(parts)


def damaged(rng: random.Random) -> bytes:
    """A request with up to three changes of the kinds that break parsers."""
    message = bytearray(request(rng))
    for _ in range(rng.randrange(4)):
        at = rng.randrange(len(message) + 1)
        match rng.randrange(5):
            case 0:
                del message[at : at + rng.choice([1, 2, 5, 10_000])]
            case 1:
                message[at:at] = rng.randbytes(rng.randrange(1, 5))
            case 2:
                message[at : at + 1] = rng.choice([b"\x00", b"\x0a", b"\x12", b"\x1a", b"\x22", b"\x7f", b"\x80"])
            case 3:
                message[at:at] = b"\xff" * rng.randrange(1, 11) + bytes([rng.randrange(128)])
            case _:
                start = rng.randrange(len(message) + 1)
                message[at:at] = message[start : start + rng.randrange(40)]
    return bytes(message)


@pytest.mark.parametrize("seed", range(INPUTS // BATCH))
def test_damaged_requests_split_as_they_decode(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 # repeatable on purpose
    messages = [damaged(rng) for _ in range(BATCH)]
    splits = compare_splits(messages, seed % 8 + 1, LIMITS)
    assert 0 < len(splits) < BATCH

"""Two hundred thousand damaged messages, each decoded by the kernels and by the official implementation."""

import random

import pytest

from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.decoding import compare

pytestmark = pytest.mark.simulation

INPUTS = 200_000
BATCH = 2_000
LIMITS = Limits(labels=4, label_name=20, label_value=140)


def sound_message(rng: random.Random) -> bytes:
    names = ["__name__", "a", "b", "job", "é", "", "n" * 21]
    values = ["1", "up", "", "x" * 130, "x" * 141, "€"]
    return encode_request(
        Series(
            [(rng.choice(names), rng.choice(values)) for _ in range(rng.randrange(6))],
            [(rng.getrandbits(rng.choice([6, 40, 63])), rng.random()) for _ in range(rng.randrange(3))],
        )
        for _ in range(rng.randrange(4))
    )


def damage(rng: random.Random, message: bytearray, other: bytes) -> None:
    """One change of the kind that breaks parsers."""
    at = rng.randrange(len(message) + 1)
    match rng.randrange(7):
        case 0:
            del message[at:]
        case 1:
            del message[at : at + rng.randrange(1, 5)]
        case 2:
            message[at:at] = rng.randbytes(rng.randrange(1, 5))
        case 3 if at < len(message):
            message[at] ^= 1 << rng.randrange(8)
        case 4 if at < len(message):
            message[at] = rng.choice([0x00, 0x02, 0x0A, 0x12, 0x1A, 0x22, 0x7F, 0x80, 0xFF])
        case 5:
            message[at:at] = b"\xff" * rng.randrange(1, 11) + bytes([rng.randrange(128)])
        case _:
            start = rng.randrange(len(other) + 1)
            message[at:at] = other[start : start + rng.randrange(40)]


def damaged_message(rng: random.Random) -> bytes:
    message, other = bytearray(sound_message(rng)), sound_message(rng)
    for _ in range(rng.randrange(4)):
        damage(rng, message, other)
    return bytes(message)


def has_group(message: bytes) -> bool:
    """Whether any byte could be the tag of a group, the only kind of field that is refused although protobuf
    allows it.
    """
    return any(byte & 7 in (3, 4) for byte in message)


@pytest.mark.parametrize("seed", range(INPUTS // BATCH))
def test_damaged_messages_decode_as_the_official_implementation_reads_them(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 # repeatable on purpose
    messages = [damaged_message(rng) for _ in range(BATCH)]
    columns = decode_batch([compress(message) for message in messages], LIMITS)
    broken = {fault.record for fault in columns.faults}
    assert 0 < len(broken) < BATCH
    # Our decoder may refuse a message with a group; these are excluded from both results.
    kept = [message for record, message in enumerate(messages) if not (record in broken and has_group(message))]
    compare(decode_batch([compress(message) for message in kept], LIMITS), kept, LIMITS)

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from strandline.kernels.xxh3 import hash_128

pytestmark = pytest.mark.unit

# Each length class of the algorithm and its borders, and more than one block of stripes.
LENGTHS = [*range(300), 511, 512, 513, 1023, 1024, 1025, 1087, 1088, 1089, 2047, 2048, 2049, 2112, 2113, 5000]


def digest(data: bytes, start: int, length: int) -> int:
    low, high = hash_128(np.frombuffer(data, dtype=np.uint8), start, length)
    return (int(high) << 64) | int(low)


@given(st.binary(min_size=16, max_size=64), st.integers(0, 7))
def test_every_length_gives_the_reference_implementations_digest(seed: bytes, start: int) -> None:
    data = (seed * (5100 // len(seed) + 1))[:5100]
    for length in LENGTHS:
        assert digest(data, start, length) == xxhash.xxh3_128_intdigest(data[start : start + length])

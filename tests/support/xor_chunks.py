"""A reader of Prometheus' XOR chunks, bit by bit, written only from the description of the format, for comparisons."""

import struct
from collections.abc import Iterator

Sample = tuple[int, int]  # Milliseconds, and the value's bits.
WORD = 2**64


class _Bits:
    def __init__(self, data: bytes) -> None:
        self._bits = "".join(f"{byte:08b}" for byte in data)
        self._at = 0

    def take(self, count: int) -> int:
        assert self._at + count <= len(self._bits), "the chunk is truncated"
        self._at += count
        return int(self._bits[self._at - count : self._at], 2)

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(8)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def ones(self, most: int) -> int:
        """The number of ones before a zero, which is consumed as well; at most `most` bits are read."""
        count = 0
        while count < most and self.take(1):
            count += 1
        return count

    @property
    def rest(self) -> str:
        return self._bits[self._at :]


def signed(word: int) -> int:
    word %= WORD
    return word - WORD if word >= WORD // 2 else word


def read_chunk(data: bytes) -> list[Sample]:
    """The samples of a chunk. The rest after them must be zeros, and at most one byte: Prometheus begins the next byte
    if the last one is full.
    """
    (count,) = struct.unpack_from(">H", data)
    bits = _Bits(data[2:])
    samples = list(_samples(bits, count))
    assert len(bits.rest) <= 8
    assert set(bits.rest) <= {"0"}
    return samples


def _samples(bits: _Bits, count: int) -> Iterator[Sample]:
    zigzag = bits.varint()
    time, value = (zigzag >> 1) ^ -(zigzag & 1), bits.take(64)
    yield time, value
    step, leading, width = 0, 0, 0
    for number in range(1, count):
        step = bits.varint() if number == 1 else step + _step_change(bits)
        time = signed(time + step)
        if bits.take(1):
            if bits.take(1):
                leading, width = bits.take(5), bits.take(6) or 64
            value ^= bits.take(width) << (64 - leading - width)
        yield time, value


def _step_change(bits: _Bits) -> int:
    prefix = bits.ones(4)
    if prefix == 4:
        return signed(bits.take(64))
    width = (0, 14, 17, 20)[prefix]
    change = bits.take(width) if width else 0
    # There is one more positive value than negative ones: the middle is positive.
    return change - (1 << width) if width and change > 1 << (width - 1) else change

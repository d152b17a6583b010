"""Blocks of samples as plain values, inputs beside memory that must not be read, and damage by a seed."""

import ctypes
import mmap
import random
import struct
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import xxhash

from strandline.jobs.bad_records import MAX_EXAMPLES
from strandline.jobs.sample_block import SampleBlock

Bytes = npt.NDArray[np.uint8]
Labels = tuple[tuple[bytes, bytes], ...]
Sample = tuple[Labels, int, bytes]
Parse = Callable[[Bytes, int], SampleBlock]

_LIBC = ctypes.CDLL(None, use_errno=True)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _field(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    assert data[at] == tag
    length, at = _varint(data, at + 1)
    return data[at : at + length], at + length


def labels_of(encoded: bytes) -> Labels:
    """The labels of a series' canonical bytes, which are checked to be that."""
    labels = []
    at = 0
    while at < len(encoded):
        label, at = _field(encoded, at, 0x0A)
        name, middle = _field(label, 0, 0x0A)
        value, end = _field(label, middle, 0x12)
        assert end == len(label)
        assert name
        assert value
        labels.append((name, value))
    assert labels == sorted(dict(labels).items())
    return tuple(labels)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def flat(block: SampleBlock) -> list[Sample]:
    """A block's samples in order, each with its labels and its value's bits. What holds of every block is checked."""
    columns = block.series
    series = []
    for number in range(len(columns)):
        encoded = columns.labels[columns.starts[number] : columns.starts[number + 1]].tobytes()
        key = (int(columns.key_high[number]) << 64) | int(columns.key_low[number])
        assert key == xxhash.xxh3_128_intdigest(encoded)
        series.append(labels_of(encoded))
    assert len(set(series)) == len(series)
    assert columns.starts[-1] == len(columns.labels)
    assert len(block.row) == len(block.times) == len(block.values)
    assert set(block.row.tolist()) == set(range(len(series)))
    assert len(block.bad.examples) == min(block.bad.total, MAX_EXAMPLES)
    assert block.bad.total <= block.records
    return [
        (series[row], time, bits(value))
        for row, time, value in zip(block.row.tolist(), block.times.tolist(), block.values.tolist(), strict=True)
    ]


def values_of(block: SampleBlock) -> list[float]:
    return [float(value) for value in block.values]


def array(data: bytes) -> Bytes:
    return np.frombuffer(data, dtype=np.uint8)


def guarded(data: bytes, *, before: bool = False) -> Bytes:
    """The bytes so that they end where memory begins which may not be read, or begin where such memory ends."""
    page = mmap.PAGESIZE
    size = max(1, -(-len(data) // page)) * page
    memory = np.frombuffer(mmap.mmap(-1, size + 2 * page), dtype=np.uint8)
    start = page if before else page + size - len(data)
    memory[start : start + len(data)] = array(data)
    for place in (0, page + size):
        address = ctypes.c_void_p(memory.ctypes.data + place)
        assert _LIBC.mprotect(address, ctypes.c_size_t(page), 0) == 0
    return memory[start : start + len(data)]


def damaged(data: bytes, chance: random.Random, marks: bytes) -> bytes:
    """The bytes with a few of them changed, cut out or doubled. Bytes of `marks` are put in more often than others."""
    text = bytearray(data)
    for _ in range(chance.randrange(1, 8)):
        at, length = chance.randrange(len(text) + 1), chance.randrange(1, 12)
        match chance.randrange(6):
            case 0:
                text[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                text[at : at + 1] = bytes([chance.choice(marks)])
            case 2:
                text[at:at] = bytes([chance.choice(marks)])
            case 3:
                del text[at : at + length]
            case 4:
                source = chance.randrange(len(text) + 1)
                text[at:at] = text[source : source + length]
            case _:
                del text[at + chance.randrange(200) :]
    return bytes(text)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """The same bytes, cut behind some of the newlines."""
    found: list[bytes] = []
    for line in lines_of(data):
        if found and chance.random() < 0.6:
            found[-1] += line
        else:
            found.append(line)
    return found


def lines_of(data: bytes) -> list[bytes]:
    """The lines with their newlines; nothing but a newline ends one."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def check_pieces(parse: Parse, data: bytes, offset: int, chance: random.Random) -> None:
    """Check that an input gives the same as its pieces do, one behind the other."""
    whole = parse(array(data), offset)
    samples: list[Sample] = []
    records = nulls = 0
    counts: dict[str, int] = {}
    examples: list[tuple[int, str, str]] = []
    for piece in pieces(data, chance):
        block = parse(array(piece), offset)
        samples += flat(block)
        records += block.records
        nulls += block.nulls
        for reason, count in block.bad.counts.items():
            counts[reason] = counts.get(reason, 0) + count
        examples += [(one.offset, one.reason, one.excerpt) for one in block.bad.examples]
        offset += len(piece)
    assert samples == flat(whole)
    assert (records, nulls, counts) == (whole.records, whole.nulls, dict(whole.bad.counts))
    assert examples[:MAX_EXAMPLES] == [(one.offset, one.reason, one.excerpt) for one in whole.bad.examples]

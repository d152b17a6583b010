"""Inputs next to memory that must not be read, and random damage from a seed."""

import ctypes
import mmap
import random
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from strandline.jobs.bad_records import MAX_EXAMPLES
from strandline.jobs.sample_block import SampleBlock
from support.sample_blocks import FlatSample, flat

Bytes = npt.NDArray[np.uint8]
Parse = Callable[[Bytes, int], SampleBlock]

_LIBC = ctypes.CDLL(None, use_errno=True)


def array(data: bytes) -> Bytes:
    return np.frombuffer(data, dtype=np.uint8)


def guarded(data: bytes, *, before: bool = False) -> Bytes:
    """A copy of the bytes that ends directly before, or begins directly after, memory that must not be read."""
    page = mmap.PAGESIZE
    size = max(1, -(-len(data) // page)) * page
    memory = np.frombuffer(mmap.mmap(-1, size + 2 * page), dtype=np.uint8)
    start = page if before else page + size - len(data)
    memory[start : start + len(data)] = array(data)
    for place in (0, page + size):
        address = ctypes.c_void_p(memory.ctypes.data + place)
        assert _LIBC.mprotect(address, ctypes.c_size_t(page), 0) == 0
    return memory[start : start + len(data)]


def damaged(data: bytes, rng: random.Random, inserted: bytes) -> bytes:
    """The bytes with some of them changed, removed or duplicated. Bytes of `inserted` are inserted more often."""
    text = bytearray(data)
    for _ in range(rng.randrange(1, 8)):
        at, length = rng.randrange(len(text) + 1), rng.randrange(1, 12)
        match rng.randrange(6):
            case 0:
                text[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                text[at : at + 1] = bytes([rng.choice(inserted)])
            case 2:
                text[at:at] = bytes([rng.choice(inserted)])
            case 3:
                del text[at : at + length]
            case 4:
                source = rng.randrange(len(text) + 1)
                text[at:at] = text[source : source + length]
            case _:
                del text[at + rng.randrange(200) :]
    return bytes(text)


def pieces(data: bytes, rng: random.Random) -> list[bytes]:
    """The same bytes, split after some of the newlines."""
    found: list[bytes] = []
    for line in lines_of(data):
        if found and rng.random() < 0.6:
            found[-1] += line
        else:
            found.append(line)
    return found


def lines_of(data: bytes) -> list[bytes]:
    """The lines, including their newlines. Only a newline ends a line."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def check_pieces(parse: Parse, data: bytes, offset: int, rng: random.Random) -> None:
    """Check that parsing an input gives the same as parsing its pieces one after the other."""
    whole = parse(array(data), offset)
    samples: list[FlatSample] = []
    records = nulls = 0
    counts: dict[str, int] = {}
    examples: list[tuple[int, str, str]] = []
    for piece in pieces(data, rng):
        block = parse(array(piece), offset)
        samples += flat(block)
        records += block.records
        nulls += block.nulls
        for reason, count in block.bad.counts.items():
            counts[reason] = counts.get(reason, 0) + count
        examples += [(example.offset, example.reason, example.excerpt) for example in block.bad.examples]
        offset += len(piece)
    assert samples == flat(whole)
    assert (records, nulls, counts) == (whole.records, whole.nulls, dict(whole.bad.counts))
    assert examples[:MAX_EXAMPLES] == [
        (example.offset, example.reason, example.excerpt) for example in whole.bad.examples
    ]

"""The byte layouts of part keys: one part key, a packed batch of them, and a page of terms.

A *part key* is a label set in canonical form: labels sorted by name, without duplicate names or empty values. Its bytes
are, for each label in order: the name's length as u16, the name, the value's length as u16, the value. Numbers are
little endian, text is UTF-8. The number of labels follows from the length, and `__name__` is a label like any other.
The Java extension makes a document's fields from these bytes, so that Python never has to parse them. Lucene's limit on
a term, 32,766 bytes, applies to each value, and to all names of a key together.

A *packed batch* has n part keys as columns: u32 n; n part ids of u32; n key hashes of two u64; n + 1 offsets of u32
into what follows, the first one 0; the part keys, one after the other.
"""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from strandline.arrays import run_offsets
from strandline.errors import Fatal
from strandline.index.kernels.gather import gather_runs

# The limit of Java arrays; slightly less, because some JVMs reserve a few words.
MAX_PACKED_BYTES = 2**31 - 1024
_HASH_WORDS = 2
# Created once: a type given by name is looked up each time, which matters when one key is read.
_U8, _U32, _U64, _I64 = np.dtype("u1"), np.dtype("<u4"), np.dtype("<u8"), np.dtype("<i8")


class MalformedBatch(Fatal):
    """A batch, or a part key in it, violates its layout or a limit. None of it was used.

    `document` is the index of the part key in the batch, from 0, or -1 if the batch as a whole is wrong; `position` is
    the first wrong byte of the packed batch, or -1 if it was not packed yet.
    """

    def __init__(self, reason: str, *, document: int = -1, position: int = -1) -> None:
        where = f"part key {document} of the batch" if document >= 0 else "the batch"
        at = f" at byte {position}" if position >= 0 else ""
        super().__init__(f"{where} is malformed{at}: {reason}")
        self.reason = reason
        self.document = document
        self.position = position


def encode_part_key(labels: Mapping[str, str]) -> bytes:
    """Encode a label set in canonical form. A label with an empty value is equivalent to a missing label, and
    omitted.
    """
    return b"".join(sized(text.encode()) for name in sorted(labels) if labels[name] for text in (name, labels[name]))


def decode_part_key(part_key: bytes) -> dict[str, str]:
    """Return the labels of a part key in order. It parses label by label, for display, tests and few keys."""
    decoded = [text.decode() for text in texts_of_part_key(part_key)]
    return dict(zip(decoded[::2], decoded[1::2], strict=True))


def texts_of_part_key(part_key: bytes) -> list[bytes]:
    """Return the names and values of a part key, each name before its value: for few keys."""
    texts = []
    position, end = 0, len(part_key)
    try:
        while position < end:
            start = position + 2
            position = start + (part_key[position] | part_key[position + 1] << 8)
            texts.append(part_key[start:position])
    except IndexError as error:
        raise MalformedBatch("a part key is cut off in a length") from error
    if position > end or len(texts) % 2:
        raise MalformedBatch("a part key is cut off in a text")
    return texts


def encode_values(values: Iterable[str]) -> bytes:
    """Encode a list of values for the extension: for each its length as u16 and its bytes."""
    return b"".join(sized(value.encode()) for value in values)


def sized(text: bytes) -> bytes:
    """Return a text preceded by its length as u16."""
    if len(text) > 0xFFFF:
        raise MalformedBatch(f"a text of {len(text)} bytes is too long for a length of 16 bits")
    return struct.pack("<H", len(text)) + text


@dataclass(frozen=True, slots=True)
class PartKeyBatch:
    """Part keys as columns: part id, key hash in two words, and the bytes between consecutive offsets.

    The offsets may start anywhere in `keys`, so a slice of a larger batch is a batch too.
    """

    part_ids: NDArray[np.uint32]
    key_hashes: NDArray[np.uint64]
    offsets: NDArray[np.uint32] | NDArray[np.int64]
    keys: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.part_ids)

    @classmethod
    def of(cls, part_ids: Iterable[int], key_hashes: Iterable[tuple[int, int]], part_keys: Iterable[bytes]) -> Self:
        """Make a batch key by key: for tests and few keys."""
        keys = list(part_keys)
        return cls(
            np.fromiter(part_ids, dtype=np.uint32),
            np.array(list(key_hashes), dtype=np.uint64).reshape(-1, _HASH_WORDS),
            np.cumsum([0, *map(len, keys)], dtype=np.int64),
            np.frombuffer(b"".join(keys), dtype=np.uint8),
        )

    def part_key(self, index: int) -> bytes:
        """Return the bytes of one part key."""
        return self.keys[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def part(self, first: int, stop: int) -> Self:
        """Return the keys `[first, stop)`: a view, without copying their bytes."""
        indices = slice(first, stop)
        return type(self)(self.part_ids[indices], self.key_hashes[indices], self.offsets[first : stop + 1], self.keys)

    def take(self, indices: NDArray[np.intp]) -> Self:
        """Return the keys at these indices, in their order."""
        starts, ends = self.offsets[indices].astype(np.int64), self.offsets[indices + 1].astype(np.int64)
        offsets = run_offsets(ends - starts)
        keys = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_runs(self.keys, starts, ends, keys)
        return type(self)(self.part_ids[indices], self.key_hashes[indices], offsets, keys)

    def pack(self) -> bytes:
        """Return the packed batch, by a few copies of arrays, however many keys there are.

        Only the consistency of the columns is checked here; the extension checks the part keys.
        """
        count = len(self)
        if self.key_hashes.shape != (count, _HASH_WORDS) or self.offsets.shape != (count + 1,):
            raise MalformedBatch(
                f"{count} part ids have hashes of shape {self.key_hashes.shape} and {len(self.offsets)} offsets"
            )
        falling = self.offsets[1:] < self.offsets[:-1]
        if falling.any():
            raise MalformedBatch("its end is before its start", document=int(falling.argmax()))
        start, end = int(self.offsets[0]), int(self.offsets[-1])
        if not 0 <= start <= end <= len(self.keys):
            raise MalformedBatch(f"offsets from {start} to {end} are outside of {len(self.keys)} bytes of part keys")
        size = 4 + 24 * count + 4 + end - start
        if size > MAX_PACKED_BYTES:
            raise MalformedBatch(f"{size} bytes exceed the limit of a Java array, {MAX_PACKED_BYTES}")
        return b"".join(
            (
                struct.pack("<I", count),
                np.ascontiguousarray(self.part_ids, dtype="<u4").data,
                np.ascontiguousarray(self.key_hashes, dtype="<u8").data,
                (self.offsets - self.offsets[0]).astype("<u4").data,
                np.ascontiguousarray(self.keys[start:end]).data,
            )
        )

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return views of a packed batch that the extension made."""
        part_ids, key_hashes = unpack_ids_and_hashes(packed)
        count = len(part_ids)
        offsets = np.frombuffer(packed, _U32, count + 1, 4 + 20 * count)
        return cls(part_ids, key_hashes, offsets, np.frombuffer(packed, _U8, -1, 8 + 24 * count))


def unpack_ids_and_hashes(packed: bytes) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    """Return views of the part ids and key hashes at the start of a packed batch, or of a dump of a segment."""
    count = int.from_bytes(packed[:4], "little")
    key_hashes = np.frombuffer(packed, _U64, _HASH_WORDS * count, 4 + 4 * count)
    return np.frombuffer(packed, _U32, count, 4), key_hashes.reshape(count, _HASH_WORDS)


@dataclass(frozen=True, slots=True)
class KeyList:
    """Part keys that a search has fetched, without their hashes: ids, and the bytes between consecutive offsets. The
    first offset is 0, and the last one the length of `keys`.
    """

    part_ids: NDArray[np.uint32]
    offsets: NDArray[np.int64]
    keys: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.part_ids)

    def part_keys(self) -> list[bytes]:
        """Return the bytes of each key: for few keys."""
        data = self.keys.tobytes()
        return [data[start:end] for start, end in pairwise(self.offsets.tolist())]

    def take(self, indices: NDArray[np.intp]) -> Self:
        """Return the keys at these indices, in their order."""
        starts, ends = self.offsets[indices], self.offsets[indices + 1]
        offsets = run_offsets(ends - starts)
        keys = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_runs(self.keys, starts, ends, keys)
        return type(self)(self.part_ids[indices], offsets, keys)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Return views of the extension's layout: u64 n; n + 1 offsets of u64; n part ids of u32; the part keys."""
        count = int.from_bytes(packed[:8], "little")
        ids = 8 * (count + 2)
        return cls(
            np.frombuffer(packed, _U32, count, ids),
            np.frombuffer(packed, _I64, count + 1, 8),
            np.frombuffer(packed, _U8, -1, ids + 4 * count),
        )


@dataclass(frozen=True, slots=True)
class TermCounts:
    """Names or values of labels in the order of their code points, each with the number of part keys that have it. Term
    i is `data[offsets[i]:offsets[i + 1]]`, as UTF-8.
    """

    offsets: NDArray[np.uint32] | NDArray[np.int64]
    data: NDArray[np.uint8]
    counts: NDArray[np.uint32] | NDArray[np.int64]
    # Whether there are more after the last one.
    more: bool
    # Whether all keys were counted, not only selected ones.
    of_all: bool = False

    @property
    def terms(self) -> list[str]:
        """The terms as texts: for few terms."""
        text = self.data.data
        return [str(text[start:end], "utf-8") for start, end in pairwise(self.offsets.tolist())]

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Decode the extension's layout: u32 n; u32 more or not; n counts of u32; n + 1 offsets of u32; the terms."""
        count, more = struct.unpack_from("<II", packed)
        offsets = np.frombuffer(packed, "<u4", count + 1, offset=8 + 4 * count)
        data = np.frombuffer(packed, np.uint8, offset=12 + 8 * count)
        return cls(offsets, data, np.frombuffer(packed, "<u4", count, offset=8), bool(more))

"""Answers as JSON in pieces, so that a large one is never whole in memory, and none is made of Python objects."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import orjson

from strandline.arrays import I64s, U64s
from strandline.index.key_bytes import Bytes, KeyBytes
from strandline.node.http.api.kernels.decimals import write_time
from strandline.node.http.api.kernels.json_text import (
    POINT_FRAME,
    SERIES_FRAME,
    WIDEST,
    write_matrix,
    write_point,
    write_series,
    write_terms,
    write_vector,
)
from strandline.node.query.answers import TermsAnswer
from strandline.promql.go_text import as_utf8

# How long a piece may be in the worst case. In an ordinary one it is a third of that, or less.
_ROOM = 2 << 20
# What fits into this is made in one piece, without a look at each entry first.
_LITTLE = 1 << 20
# What surrounds a term: quotes and a comma.
_TERM_FRAME = 4

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Points:
    """Series in the order of their labels, each with at least one point: those of series i are `first_point[i]` up to,
    not including, `first_point[i + 1]`. Values are given by their bits, so that every NaN stays what it is.
    """

    keys: KeyBytes
    first_point: I64s
    time: I64s
    bits: U64s

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        columns = (self.keys.offsets, self.keys.data, self.first_point, self.time, self.bits)
        return sum(column.nbytes for column in columns)

    def first(self, limit: int) -> "Points":
        """At most so many series."""
        if len(self) <= limit:
            return self
        behind = int(self.first_point[limit])
        keys = KeyBytes(self.keys.offsets[: limit + 1], self.keys.data)
        return Points(keys, self.first_point[: limit + 1], self.time[:behind], self.bits[:behind])


def settled(column: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """The same in an array of the ordinary kind, copied if need be: kernels are compiled for each kind they meet."""
    return np.require(column, requirements=("C", "A", "W"))


def _settled_keys(keys: KeyBytes) -> KeyBytes:
    if keys.offsets.flags.carray and keys.data.flags.carray:
        return keys
    return KeyBytes(settled(keys.offsets), settled(keys.data))


def terms_json(answer: TermsAnswer) -> Iterable[bytes]:
    """A list of strings."""
    terms = _settled_keys(KeyBytes(answer.offsets, answer.data))

    def write(first: int, behind: int, out: Bytes) -> int:
        return int(write_terms(terms.offsets, terms.data, first, behind, out))

    return _listed(terms, _TERM_FRAME, write)


def series_json(keys: KeyBytes) -> Iterable[bytes]:
    """A list of label sets."""
    keys = _settled_keys(keys)

    def write(first: int, behind: int, out: Bytes) -> int:
        return int(write_series(keys.offsets, keys.data, first, behind, out))

    return _listed(keys, SERIES_FRAME, write)


def vector_json(points: Points, time: int) -> Iterable[bytes]:
    """A list of label sets with the only point of each, at one time."""
    keys = _settled_keys(points.keys)
    bits = settled(points.bits)
    room = np.diff(keys.offsets) * WIDEST + SERIES_FRAME + POINT_FRAME

    def write(first: int, behind: int, out: Bytes) -> int:
        return int(write_vector(keys.offsets, keys.data, time, bits, first, behind, out))

    return _in_pieces(room, write)


def matrix_json(points: Points) -> Iterable[bytes]:
    """A list of label sets with their points."""
    keys = _settled_keys(points.keys)
    columns = (settled(points.first_point), settled(points.time), settled(points.bits))
    room = np.diff(keys.offsets) * WIDEST + SERIES_FRAME + np.diff(points.first_point) * POINT_FRAME

    def write(first: int, behind: int, out: Bytes) -> int:
        return int(write_matrix(keys.offsets, keys.data, *columns, first, behind, out))

    return _in_pieces(room, write)


def scalar_json(time: int, value: float) -> Iterator[bytes]:
    """One point."""
    out = np.empty(POINT_FRAME, dtype=np.uint8)
    yield out[: int(write_point(time, np.float64(value).view(np.uint64), out, 0))].tobytes()


def string_json(time: int, text: str) -> Iterator[bytes]:
    """A moment and a text."""
    out = np.empty(POINT_FRAME, dtype=np.uint8)
    end = int(write_time(time, out, 0))
    yield b"[%s,%s]" % (out[:end].tobytes(), orjson.dumps(as_utf8(text)))


def _listed(texts: KeyBytes, frame: int, write: Callable[[int, int, Bytes], int]) -> Iterable[bytes]:
    """A list of texts, each with so many bytes around it at the most, as `_in_pieces` makes it."""
    most = len(texts.data) * WIDEST + len(texts) * frame
    if most > _LITTLE:
        return _in_pieces(np.diff(texts.offsets) * WIDEST + frame, write)
    out = np.empty(most, dtype=np.uint8)
    length = write(0, len(texts), out)
    return (b"[", out[: max(0, length - 1)].tobytes(), b"]")


def _in_pieces(room: I64s, write: Callable[[int, int, Bytes], int]) -> Iterator[bytes]:
    """The list, so many entries at a time as surely fit. `write` puts entries into an array, a comma behind each, and
    says where it stopped.
    """
    yield b"["
    ends = np.cumsum(room)
    first = 0
    while first < len(room):
        before = int(ends[first - 1]) if first else 0
        behind = max(first + 1, int(np.searchsorted(ends, before + _ROOM, side="right")))
        out = np.empty(int(ends[behind - 1]) - before, dtype=np.uint8)
        length = write(first, behind, out)
        # The comma behind the last entry of all belongs to nobody.
        yield out[: length - (behind == len(room))].tobytes()
        first = behind
    yield b"]"

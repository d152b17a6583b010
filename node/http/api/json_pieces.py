"""Writes answers as JSON in pieces, so that a large answer is never complete in memory, without Python objects per
entry.
"""

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
    MAX_ESCAPED,
    POINT_FRAME,
    SERIES_FRAME,
    write_matrix,
    write_point,
    write_series,
    write_terms,
    write_vector,
)
from strandline.node.query.answers import TermsAnswer
from strandline.promql.go_text import as_utf8

# The maximum size of a piece in the worst case. Usually it is a third of that, or less.
_PIECE_BYTES = 2 << 20
# Lists up to this size in the worst case are made in one piece, without computing the size of each entry.
_MAX_ONE_PIECE = 1 << 20
# What surrounds a term: quotes and a comma.
_TERM_FRAME = 4

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Points:
    """Series in the order of their labels, each with at least one point: those of series i are `first_point[i]` up to,
    not including, `first_point[i + 1]`. Values are given by their bits, which preserves every NaN.
    """

    keys: KeyBytes
    first_point: I64s
    time: I64s
    bits: U64s

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Their size in memory."""
        columns = (self.keys.offsets, self.keys.data, self.first_point, self.time, self.bits)
        return sum(column.nbytes for column in columns)

    def first(self, limit: int) -> "Points":
        """At most `limit` series."""
        if len(self) <= limit:
            return self
        end = int(self.first_point[limit])
        keys = KeyBytes(self.keys.offsets[: limit + 1], self.keys.data)
        return Points(keys, self.first_point[: limit + 1], self.time[:end], self.bits[:end])


def ordinary_array(column: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
    """A contiguous, aligned and writable array, copied if necessary: kernels are compiled for each kind of array."""
    return np.require(column, requirements=("C", "A", "W"))


def _ordinary_keys(keys: KeyBytes) -> KeyBytes:
    if keys.offsets.flags.carray and keys.data.flags.carray:
        return keys
    return KeyBytes(ordinary_array(keys.offsets), ordinary_array(keys.data))


def terms_json(answer: TermsAnswer) -> Iterable[bytes]:
    """A list of strings."""
    terms = _ordinary_keys(KeyBytes(answer.offsets, answer.data))

    def write(first: int, end: int, out: Bytes) -> int:
        return int(write_terms(terms.offsets, terms.data, first, end, out))

    return _listed(terms, _TERM_FRAME, write)


def series_json(keys: KeyBytes) -> Iterable[bytes]:
    """A list of label sets."""
    keys = _ordinary_keys(keys)

    def write(first: int, end: int, out: Bytes) -> int:
        return int(write_series(keys.offsets, keys.data, first, end, out))

    return _listed(keys, SERIES_FRAME, write)


def vector_json(points: Points, time: int) -> Iterable[bytes]:
    """A list of label sets with the only point of each, at one time."""
    keys = _ordinary_keys(points.keys)
    bits = ordinary_array(points.bits)
    room = np.diff(keys.offsets) * MAX_ESCAPED + SERIES_FRAME + POINT_FRAME

    def write(first: int, end: int, out: Bytes) -> int:
        return int(write_vector(keys.offsets, keys.data, time, bits, first, end, out))

    return _in_pieces(room, write)


def matrix_json(points: Points) -> Iterable[bytes]:
    """A list of label sets with their points."""
    keys = _ordinary_keys(points.keys)
    columns = (ordinary_array(points.first_point), ordinary_array(points.time), ordinary_array(points.bits))
    room = np.diff(keys.offsets) * MAX_ESCAPED + SERIES_FRAME + np.diff(points.first_point) * POINT_FRAME

    def write(first: int, end: int, out: Bytes) -> int:
        return int(write_matrix(keys.offsets, keys.data, *columns, first, end, out))

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
    """A list of texts, each surrounded by at most `frame` bytes, as `_in_pieces` makes it."""
    max_bytes = len(texts.data) * MAX_ESCAPED + len(texts) * frame
    if max_bytes > _MAX_ONE_PIECE:
        return _in_pieces(np.diff(texts.offsets) * MAX_ESCAPED + frame, write)
    out = np.empty(max_bytes, dtype=np.uint8)
    length = write(0, len(texts), out)
    return (b"[", out[: max(0, length - 1)].tobytes(), b"]")


def _in_pieces(room: I64s, write: Callable[[int, int, Bytes], int]) -> Iterator[bytes]:
    """The list, in pieces with as many entries as always fit. `write` writes entries into an array, each followed by a
    comma, and returns the end.
    """
    yield b"["
    ends = np.cumsum(room)
    first = 0
    while first < len(room):
        before = int(ends[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(ends, before + _PIECE_BYTES, side="right")))
        out = np.empty(int(ends[end - 1]) - before, dtype=np.uint8)
        length = write(first, end, out)
        # Without the comma after the last entry of the list.
        yield out[: length - (end == len(room))].tobytes()
        first = end
    yield b"]"

"""Operations on columns of label sets: selecting labels, grouping keys, and reading or setting one label.

A label set is encoded like a part key (`strandline.index.documents`), but it need not be the key of a stored series: it
may be empty, and two may be equal. No function creates a Python object per key.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows
from strandline.index.kernels.gather import gather_runs
from strandline.index.key_bytes import Bytes, KeyBytes
from strandline.index.selectors import METRIC_NAME
from strandline.promql.errors import EvaluationError
from strandline.promql.kernels.label_sets import (
    fill_slots,
    find_distinct,
    find_groups,
    find_values,
    join_texts,
    select_labels,
    set_label,
)

METADATA_LABELS: Final = (METRIC_NAME, "__type__", "__unit__")
"""The labels that functions drop, because the result is no longer a sample of the metric."""
_MAX_VALUE_BYTES: Final = 0xFFFF
_MIN_SLOTS: Final = 64
_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts as UTF-8: text i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: I64s
    data: Bytes

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def text(self, position: int) -> bytes:
        """The text at a position."""
        return self.data[self.offsets[position] : self.offsets[position + 1]].tobytes()

    @classmethod
    def of(cls, texts: Iterable[bytes]) -> "Texts":
        """Build a column from a few texts."""
        listed = list(texts)
        return cls(np.cumsum([0, *map(len, listed)], dtype=np.int64), _bytes_of(b"".join(listed)))


def _bytes_of(text: bytes) -> Bytes:
    # Writable, as most columns are: numba would compile the kernels again for read-only arrays.
    return np.frombuffer(bytearray(text), dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Groups:
    """Keys by their grouping labels: key i is in group `group_of[i]`, whose labels are `keys[group_of[i]]`. Groups are
    in the order of their first key.
    """

    group_of: Rows
    keys: KeyBytes


def is_valid_label_name(name: str) -> bool:
    """Whether Prometheus accepts it: any non-empty UTF-8 text."""
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


def keeping(keys: KeyBytes, names: Iterable[str]) -> KeyBytes:
    """The keys with only these labels."""
    return _selected(keys, names, is_without=False)


def without(keys: KeyBytes, names: Iterable[str]) -> KeyBytes:
    """The keys without these labels. The metric name is kept unless it is one of them."""
    return _selected(keys, names, is_without=True)


def without_name(keys: KeyBytes) -> KeyBytes:
    """The keys without the labels that functions and arithmetic operators drop (`METADATA_LABELS`)."""
    return without(keys, METADATA_LABELS)


def _selected(keys: KeyBytes, names: Iterable[str], *, is_without: bool) -> KeyBytes:
    wanted = _sorted_names(names)
    offsets = np.empty_like(keys.offsets, dtype=np.int64)
    out = np.empty(int(keys.offsets[-1] - keys.offsets[0]), dtype=np.uint8)
    select_labels(keys.data, keys.offsets, wanted.data, wanted.offsets, is_without, out, offsets)
    return KeyBytes(offsets, out[: offsets[-1]])


def _sorted_names(names: Iterable[str]) -> Texts:
    return Texts.of(sorted({name.encode() for name in names}))


class GroupTable:
    """Groups of keys, to which blocks of keys are added: by the labels `names`, or with `is_without` by all others."""

    def __init__(self, names: Iterable[str], *, is_without: bool) -> None:
        self._names = _sorted_names(names)
        self._is_without = is_without
        self._count = 0
        self._slots = np.zeros(_MIN_SLOTS, dtype=np.int64)
        self._hashes = np.empty(_MIN_SLOTS, dtype=np.uint64)
        self._offsets = np.zeros(_MIN_SLOTS + 1, dtype=np.int64)
        self._data = np.empty(0, dtype=np.uint8)

    @classmethod
    def of_aggregation(cls, names: Iterable[str], *, is_without: bool) -> "GroupTable":
        """The groups of `by` or `without`. `without` also drops the metric name; `by` keeps only the named labels."""
        return cls((*names, METRIC_NAME) if is_without else names, is_without=is_without)

    @classmethod
    def of_matching(cls, names: Iterable[str], *, is_on: bool) -> "GroupTable":
        """The signatures of `on` or `ignoring`. `ignoring` also ignores the metric name."""
        return cls(names if is_on else (*names, METRIC_NAME), is_without=not is_on)

    @classmethod
    def of_whole_keys(cls) -> "GroupTable":
        """One group for each distinct label set."""
        return cls((), is_without=True)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> KeyBytes:
        """The labels of each group."""
        offsets = self._offsets[: self._count + 1].copy()
        return KeyBytes(offsets, self._data[: offsets[-1]])

    def add(self, keys: KeyBytes) -> Rows:
        """The group of each key. New groups get the next numbers."""
        self._reserve(len(keys), int(keys.offsets[-1] - keys.offsets[0]))
        group_of = np.empty(len(keys), dtype=np.int64)
        self._count = find_groups(
            keys.data,
            keys.offsets,
            self._names.data,
            self._names.offsets,
            self._is_without,
            self._slots,
            self._hashes,
            self._offsets,
            self._data,
            self._count,
            group_of,
        )
        return group_of

    def _reserve(self, keys: int, size: int) -> None:
        groups = self._count + keys
        if len(self._slots) < 2 * groups:
            self._slots = np.zeros(1 << (2 * groups - 1).bit_length(), dtype=np.int64)
            self._hashes = _grown(self._hashes, self._count, len(self._slots) // 2)
            self._offsets = _grown(self._offsets, self._count + 1, len(self._slots) // 2 + 1)
            fill_slots(self._slots, self._hashes, self._count)
        used = int(self._offsets[self._count])
        if len(self._data) < used + size:
            # `keys` that were returned before still reference the old array.
            self._data = _grown(self._data, used, max(used + size, 2 * used))


def _grown(array: npt.NDArray[_Kind], used: int, size: int) -> npt.NDArray[_Kind]:
    larger = np.empty(size, dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


def groups(keys: KeyBytes, names: Iterable[str], *, is_without: bool) -> Groups:
    """The groups of an aggregation."""
    table = GroupTable.of_aggregation(names, is_without=is_without)
    return Groups(table.add(keys), table.keys)


def signatures(sides: Sequence[KeyBytes], names: Iterable[str], *, is_on: bool) -> tuple[list[Rows], KeyBytes]:
    """For each side of an operator, the signature of each key: keys match if their signatures are equal. Signatures are
    numbers from 0 on; the second result is the labels of each. Labels are compared by their bytes, not only by a hash.
    """
    table = GroupTable.of_matching(names, is_on=is_on)
    return [table.add(keys) for keys in sides], table.keys


def distinct_keys(keys: KeyBytes) -> tuple[Rows, Rows]:
    """For each key the number of its label set, and for each number the position of the first key that has it."""
    return _distinct(keys.offsets, keys.data)


def distinct_texts(texts: Texts) -> tuple[Rows, Rows]:
    """For each text its number, and for each number the position of the first text that has it."""
    return _distinct(texts.offsets, texts.data)


def _distinct(offsets: I64s, data: Bytes) -> tuple[Rows, Rows]:
    count = len(offsets) - 1
    slots = np.zeros(max(_MIN_SLOTS, 1 << (2 * count).bit_length()), dtype=np.int64)
    hashes = np.empty(count, dtype=np.uint64)
    number_of, first_of = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    found = find_distinct(data, offsets, slots, hashes, first_of, number_of)
    return number_of, first_of[:found]


def first_duplicate(keys: KeyBytes) -> tuple[int, int] | None:
    """The positions of the first two keys with equal label sets; None if all are distinct."""
    number_of, first_of = distinct_keys(keys)
    if len(first_of) == len(keys):
        return None
    later = int(np.flatnonzero(first_of[number_of] != np.arange(len(keys)))[0])
    return int(first_of[number_of[later]]), later


def check_distinct(keys: KeyBytes) -> None:
    """Raise `EvaluationError` if a label set occurs twice."""
    if first_duplicate(keys) is not None:
        raise EvaluationError("vector cannot contain metrics with the same labelset")


def label_values(keys: KeyBytes, name: str) -> Texts:
    """The value of a label in each key; empty where the key lacks it."""
    starts, ends = _value_bounds(keys, name)
    offsets = np.zeros(len(keys) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    data = np.empty(int(offsets[-1]), dtype=np.uint8)
    gather_runs(keys.data, starts, ends, data)
    return Texts(offsets, data)


def _value_bounds(keys: KeyBytes, name: str) -> tuple[I64s, I64s]:
    starts, ends = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    find_values(keys.data, keys.offsets, _bytes_of(name.encode()), starts, ends)
    return starts, ends


def with_label(keys: KeyBytes, name: str, values: Texts, value_of: Rows | None = None) -> KeyBytes:
    """The keys with one label set to a value: key i to value i or, with `value_of`, to value `value_of[i]`, where -1
    leaves the key unchanged. An empty value deletes the label.
    """
    chosen = np.arange(len(keys), dtype=np.int64) if value_of is None else value_of
    lengths = np.diff(values.offsets)
    encoded = _bytes_of(name.encode())
    longest = max(int(lengths.max(initial=0)), len(encoded))
    if longest > _MAX_VALUE_BYTES:
        raise EvaluationError(
            f"label {name[:64]!r} would be {longest} bytes long", remedy=f"Labels have at most {_MAX_VALUE_BYTES} bytes"
        )
    added = int(lengths[chosen[chosen >= 0]].sum()) + len(keys) * (4 + len(encoded))
    offsets = np.empty(len(keys) + 1, dtype=np.int64)
    out = np.empty(int(keys.offsets[-1] - keys.offsets[0]) + added, dtype=np.uint8)
    set_label(keys.data, keys.offsets, encoded, values.data, values.offsets, chosen, out, offsets)
    return KeyBytes(offsets, out[: offsets[-1]])


def label_join(keys: KeyBytes, target: str, separator: str, sources: Sequence[str]) -> KeyBytes:
    """The keys with a label set to the joined values of other labels. The result may have equal keys."""
    for source in sources:
        if not is_valid_label_name(source):
            raise EvaluationError(f"invalid source label name in label_join(): {source}")
    if not is_valid_label_name(target):
        raise EvaluationError(f"invalid destination label name in label_join(): {target}")
    starts = np.empty((len(sources), len(keys)), dtype=np.int64)
    ends = np.empty_like(starts)
    for row, source in enumerate(sources):
        starts[row], ends[row] = _value_bounds(keys, source)
    between = _bytes_of(separator.encode())
    size = int((ends - starts).sum()) + max(len(sources) - 1, 0) * len(between) * len(keys)
    joined = Texts(np.empty(len(keys) + 1, dtype=np.int64), np.empty(size, dtype=np.uint8))
    join_texts(between, keys.data, starts, ends, joined.data, joined.offsets)
    return with_label(keys, target, joined)

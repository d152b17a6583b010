"""Label sets to distinct series in canonical form, or the reasons why a label set can't be used."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s
from strandline.jobs.kernels.label_sets import LABEL_OVERHEAD, build_label_sets
from strandline.jobs.sample_block import SeriesColumns
from strandline.wire.decode import Limits
from strandline.wire.kernels.labels import MAX_LABELS, Verdict

LABEL_REASONS = {
    Verdict.NO_LABELS: "series without a label",
    Verdict.EMPTY_NAME: "label without a name",
    Verdict.DUPLICATE_NAME: "label name twice",
    Verdict.NOT_UTF8: "label is not UTF-8",
    Verdict.TOO_MANY_LABELS: "too many labels",
    Verdict.NAME_TOO_LONG: "label name too long",
    Verdict.VALUE_TOO_LONG: "label value too long",
}


@dataclass(frozen=True, slots=True)
class LabelColumns:
    """Labels as the addresses and lengths of their names and values.

    The labels of set i are those from `first_label[i]` to `first_label[i + 1]` (exclusive). The caller must keep the
    memory alive.
    """

    first_label: I64s
    names: I64s
    name_lengths: I64s
    values: I64s
    value_lengths: I64s


def build_series(columns: LabelColumns, limits: Limits) -> tuple[SeriesColumns, I64s]:
    """The distinct series in the order of their first occurrence, and for each label set the number of its series, or
    the negated `Verdict` if it can't be used. Sets that differ only in order or in empty labels are one series.
    """
    sets = len(columns.first_label) - 1
    room = int(columns.name_lengths.sum() + columns.value_lengths.sum()) + LABEL_OVERHEAD * len(columns.names)
    starts, out = np.zeros(sets + 1, dtype=np.int64), np.empty(room, dtype=np.uint8)
    key_low, key_high = np.zeros(sets, dtype=np.uint64), np.zeros(sets, dtype=np.uint64)
    series_of = np.zeros(sets, dtype=np.int64)
    count, used = build_label_sets(
        columns.first_label,
        (columns.names, columns.name_lengths, columns.values, columns.value_lengths),
        (limits.labels, limits.label_name, limits.label_value),
        np.empty((MAX_LABELS, 4), dtype=np.int64),
        free_slots(sets),
        starts,
        out,
        key_low,
        key_high,
        series_of,
    )
    series = SeriesColumns(starts[: count + 1], out[:used], key_low[:count], key_high[:count])
    return series, series_of


def free_slots(keys: int) -> I64s:
    """An empty hash table for `keys` keys, which will be at most half full."""
    return np.full(1 << max(2 * keys, 1).bit_length(), -1, dtype=np.int64)

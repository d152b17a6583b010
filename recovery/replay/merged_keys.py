"""Merges what several tasks found about the keys of a unit: each key once, in the order in which a single reader would
have met them.

Blocks are in the order of their records, so a key was first met in the first block that contains it, and its position
there determines its final position. Therefore key bytes are decoded block by block, never all at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from strandline.arrays import Rows
from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.index.key_table import MISSING, KeyTable
from strandline.recovery.replay.blocks import Block
from strandline.recovery.replay.job_result import KEYS, SUMMARY
from strandline.recovery.replay.key_codec import decode_keys, decode_summary, key_rows, row_end
from strandline.recovery.replay.sections import unpack_sections
from strandline.store.jobs import ResultRow

# Row numbers reserved for a unit: more than it can need.
ROWS_PER_UNIT = 1 << 16


@dataclass(frozen=True, slots=True)
class KeyRows:
    """A row of summaries and the row of the same keys' bytes, and the number of keys."""

    rows: tuple[ResultRow, ResultRow]
    keys: int


def merged_key_rows(unit: int, blocks: Sequence[Block], *, named: str) -> Iterator[KeyRows]:
    """The rows of a unit, given its number in its job and its blocks in the order of their offsets."""
    summaries = [decode_summary(unpack_sections(block.data, named=named, count=2)[0], named=named) for block in blocks]
    merged, new = _merged(summaries)
    counts = [len(summary) for summary in summaries]
    del summaries
    seq, done = unit * ROWS_PER_UNIT, 0
    left = PartKeyBytes.concatenated([])
    for number, block in enumerate(blocks):
        found = decode_keys(unpack_sections(block.data, named=named, count=2)[1], counts[number], named=named)
        left = PartKeyBytes.concatenated([left, found.take(new[number])])
        first, is_last = 0, number == len(blocks) - 1
        # The last row of a block is continued with the next block, so that rows do not depend on the ends of blocks.
        while first < len(left) and ((end := row_end(left, first)) < len(left) or is_last):
            some = np.arange(first, end)
            for pair in _rows(merged.part(done + first, done + end), left.take(some), seq):
                yield pair
                seq += 1
            first = end
        done += first
        left = left.take(np.arange(first, len(left)))


def _rows(summary: KeySummary, keys: PartKeyBytes, seq: int) -> Iterator[KeyRows]:
    for number, row in enumerate(key_rows(summary, keys), start=seq):
        pair = ResultRow(SUMMARY, number, row.summary), ResultRow(KEYS, number, row.part_keys)
        yield KeyRows(pair, row.keys)


def _merged(summaries: Sequence[KeySummary]) -> tuple[KeySummary, list[Rows]]:
    """One summary of all, and for each summary the rows whose keys no earlier summary has."""
    table = KeyTable()
    assigned = [table.assign(one.key_low, one.key_high, next_row=len(table), max_keys=MISSING) for one in summaries]
    merged = KeySummary.concatenated([one.take(some.new) for one, some in zip(summaries, assigned, strict=True)])
    for one, some in zip(summaries, assigned, strict=True):
        # A summary has each key once, so the indexes are unique.
        merged.least[some.rows] = np.minimum(merged.least[some.rows], one.least)
        merged.greatest[some.rows] = np.maximum(merged.greatest[some.rows], one.greatest)
    return merged, [some.new for some in assigned]

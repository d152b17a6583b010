"""The keys of a unit from what several tasks say of them: each once, in the order in which a single reader would have
met them.

Blocks are of records one behind the other, so a key was met first in the first block that has it, and its place there
is its place in the end. So the keys' bytes are opened block by block, and never all at once.
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

# Numbers of rows that a unit has: more than it can ever need.
ROWS_PER_UNIT = 1 << 16


@dataclass(frozen=True, slots=True)
class KeyRows:
    """A row of summaries and the row of the same keys' bytes, and how many keys they have."""

    rows: tuple[ResultRow, ResultRow]
    keys: int


def merged_key_rows(unit: int, blocks: Sequence[Block], *, named: str) -> Iterator[KeyRows]:
    """The rows of a unit, by its number in its job, from blocks in the order of their offsets."""
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
        # The last row of a block waits for the next one, so that where rows end does not depend on where blocks do.
        while first < len(left) and ((behind := row_end(left, first)) < len(left) or is_last):
            some = np.arange(first, behind)
            for pair in _rows(merged.part(done + first, done + behind), left.take(some), seq):
                yield pair
                seq += 1
            first = behind
        done += first
        left = left.take(np.arange(first, len(left)))


def _rows(summary: KeySummary, keys: PartKeyBytes, seq: int) -> Iterator[KeyRows]:
    for number, row in enumerate(key_rows(summary, keys), start=seq):
        pair = ResultRow(SUMMARY, number, row.summary), ResultRow(KEYS, number, row.part_keys)
        yield KeyRows(pair, row.keys)


def _merged(summaries: Sequence[KeySummary]) -> tuple[KeySummary, list[Rows]]:
    """One summary of all, and of each the rows whose keys none before it has."""
    table = KeyTable()
    assigned = [table.assign(one.key_low, one.key_high, next_row=len(table), most=MISSING) for one in summaries]
    merged = KeySummary.concatenated([one.take(some.new) for one, some in zip(summaries, assigned, strict=True)])
    for one, some in zip(summaries, assigned, strict=True):
        # A summary has each key once, so no row is named twice here.
        merged.least[some.rows] = np.minimum(merged.least[some.rows], one.least)
        merged.greatest[some.rows] = np.maximum(merged.greatest[some.rows], one.greatest)
    return merged, [some.new for some in assigned]

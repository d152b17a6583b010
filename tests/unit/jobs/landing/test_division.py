"""Divided blocks: the same samples in the same order, and no block exceeds the limit."""

from collections.abc import Sequence

import cramjam
import numpy as np
import pytest

from strandline.jobs.bad_records import BadRecords
from strandline.jobs.landing.block_division import divide_block
from strandline.jobs.landing.packing import pack
from strandline.jobs.sample_block import SampleBlock
from strandline.recovery.periods import HOUR
from strandline.time_range import ALL_TIMES
from support.sample_blocks import block_of

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
ONE = [(("__name__", "m"), ("host", "h"))]
MANY = [(("__name__", "m"), ("host", f"host-{row}"), ("long", "x" * 200)) for row in range(300)]


def shapes() -> dict[str, SampleBlock]:
    """Blocks that expand: a series for each sample, and an hour for each sample."""
    scattered = [(row * 7 % 300, NOW + row * 13 % 5 * HOUR, float(row)) for row in range(3_000)]
    return {
        "a series for each sample": block_of(MANY, [(row, NOW + row, float(row)) for row in range(300)]),
        "an hour for each sample": block_of(
            [(("__name__", "m"), ("long", "x" * 500))], [(0, NOW + at * HOUR, float(at)) for at in range(400)]
        ),
        "samples of all series and hours": block_of(MANY, scattered),
        "one series": block_of(ONE, [(0, NOW + at, float(at)) for at in range(5_000)]),
        "no sample": block_of(ONE, []),
    }


def packed_size(block: SampleBlock) -> int:
    records = pack(block, 1, ALL_TIMES).records
    return sum(len(bytes(cramjam.snappy.decompress_raw(record.value))) for record in records)


def samples(blocks: Sequence[SampleBlock]) -> list[tuple[int, int, float]]:
    return [
        sample
        for block in blocks
        for sample in zip(block.row.tolist(), block.times.tolist(), block.values.tolist(), strict=True)
    ]


@pytest.mark.parametrize("most", [1, 700, 5_000, 50_000, 10_000_000])
@pytest.mark.parametrize("shape", shapes())
def test_no_part_of_a_block_exceeds_the_limit(shape: str, most: int) -> None:
    block = shapes()[shape]
    parts = list(divide_block(block, most))
    assert samples(parts) == samples([block])
    assert all(packed_size(part) <= most or len(part.row) == 1 for part in parts)
    assert sum(part.records for part in parts) == block.records


def test_an_ordinary_block_is_not_divided() -> None:
    block = shapes()["one series"]
    assert [part is block for part in divide_block(block, 200_000)] == [True]


def test_parts_are_of_about_equal_size_and_the_first_has_the_records() -> None:
    block = shapes()["one series"]
    bad = SampleBlock(block.series, block.row, block.times, block.values, 5_003, BadRecords({"wrong": 3}), nulls=2)
    parts = list(divide_block(bad, 60_000))
    assert [part.records for part in parts] == [5_003, 0]
    assert [part.bad.total for part in parts] == [3, 0]
    assert [part.nulls for part in parts] == [2, 0]
    assert min(len(part.row) for part in parts) > np.mean([len(part.row) for part in parts]) * 0.8

import struct
from itertools import pairwise

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.control_sample import ControlSample
from strandline.jobs.sample_block import SampleBlock, SeriesColumns
from support.sample_blocks import block_of

pytestmark = pytest.mark.unit

WORDS = st.integers(0, 2**64 - 1)
SERIES = st.lists(
    st.dictionaries(st.text("abc", min_size=1, max_size=2), st.text(min_size=1, max_size=4), min_size=1).map(
        lambda labels: tuple(sorted(labels.items()))
    ),
    min_size=1,
    max_size=12,
    unique=True,
)
BLOCKS = SERIES.flatmap(
    lambda series: st.builds(
        block_of,
        st.just(series),
        st.lists(st.tuples(st.integers(0, len(series) - 1), st.integers(0, 100), st.floats(0, 9)), max_size=30),
    )
)


def texts(series: SeriesColumns) -> list[bytes]:
    return [series.labels[start:end].tobytes() for start, end in pairwise(series.starts.tolist())]


def samples(block: SampleBlock) -> list[tuple[bytes, int, float]]:
    labels = texts(block.series)
    columns = (block.row.tolist(), block.times.tolist(), block.values.tolist())
    return [(labels[row], time, value) for row, time, value in zip(*columns, strict=True)]


def keys(count: int) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.random.default_rng(7).integers(0, 2**64, (2, count), dtype=np.uint64)
    return low, high


@given(st.lists(st.tuples(WORDS, WORDS), max_size=20), WORDS, st.floats(0, 1))
def test_a_series_belongs_to_it_if_its_seeded_hash_lies_below_the_fraction(
    some: list[tuple[int, int]], seed: int, fraction: float
) -> None:
    low, high = (np.array([key[word] for key in some], dtype=np.uint64) for word in range(2))
    hashes = [xxhash.xxh3_128_intdigest(struct.pack("<QQQ", seed, *key)) & (2**64 - 1) for key in some]
    found = ControlSample(fraction, seed).contains(low, high)
    assert found.tolist() == [number < fraction * 2**64 for number in hashes]


def test_the_fraction_is_met_and_another_seed_chooses_other_series() -> None:
    low, high = keys(200_000)
    one, other = (ControlSample(0.05, seed).contains(low, high) for seed in (1, 2))
    for sample in (one, other):
        assert abs(sample.mean() - 0.05) < 0.003
    assert abs((one & other).mean() - 0.0025) < 0.001


def test_a_larger_fraction_keeps_the_series_of_a_smaller_one() -> None:
    low, high = keys(10_000)
    small, large = (ControlSample(fraction, 3).contains(low, high) for fraction in (0.1, 0.3))
    assert not (small & ~large).any()


def test_fractions_0_and_1_are_exact() -> None:
    low, high = keys(1_000)
    assert not ControlSample(0.0, 5).contains(low, high).any()
    assert ControlSample(1.0, 5).contains(low, high).all()
    # Almost all: as a float, 2^64 times this rounds up to 2^64, which does not fit into 64 bits.
    assert ControlSample(np.nextafter(1.0, 0.0), 5).contains(low, high).all()


@given(BLOCKS, st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0]), WORDS)
def test_splitting_divides_series_and_samples(block: SampleBlock, fraction: float, seed: int) -> None:
    sample = ControlSample(fraction, seed)
    kept, control = sample.split(block)
    assert sorted(texts(kept.series) + texts(control)) == sorted(texts(block.series))
    assert sample.contains(control.key_low, control.key_high).all()
    assert not sample.contains(kept.series.key_low, kept.series.key_high).any()
    chosen = set(texts(control))
    assert samples(kept) == [entry for entry in samples(block) if entry[0] not in chosen]
    assert (kept.records, kept.bad) == (block.records, block.bad)
    for series in (kept.series, control):
        assert [xxhash.xxh3_128_intdigest(labels) for labels in texts(series)] == [
            int(high) << 64 | int(low) for low, high in zip(series.key_low, series.key_high, strict=True)
        ]


@given(SERIES, st.integers(1, 5), st.randoms())
def test_the_sample_does_not_depend_on_order_or_parts(series: list, parts: int, random: object) -> None:
    sample = ControlSample(0.5, 11)
    whole = set(texts(sample.split(block_of(series, []))[1]))
    shuffled = list(series)
    random.shuffle(shuffled)
    found = set()
    for number in range(parts):
        found.update(texts(sample.split(block_of(shuffled[number::parts], []))[1]))
    assert found == whole


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_a_fraction_outside_of_0_to_1_is_refused(fraction: float) -> None:
    with pytest.raises(ValueError, match="fraction"):
        ControlSample(fraction)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_of_more_than_64_bits_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match="seed"):
        ControlSample(0.5, seed)

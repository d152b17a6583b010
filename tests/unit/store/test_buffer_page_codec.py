import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.store.buffer import page_codec
from strandline.store.buffer.page_codec import Runs, decode_samples, decode_series, encode

pytestmark = pytest.mark.unit

BITS = st.integers(0, 2**64 - 1)
SPECIAL = [0x7FF0000000000002, 0x7FF8000000000001, 0xFFF8DEADBEEF0000, 0x8000000000000000, 0x7FF0000000000000]


def bits_of(value: float) -> int:
    return int(np.float64(value).view(np.uint64))


# Most numbers are drawn as bytes, because Hypothesis draws single numbers slowly.
WORDS = st.binary(min_size=8, max_size=320).map(
    lambda drawn: np.frombuffer(drawn[: len(drawn) // 8 * 8], dtype=np.int64)
)
ODD = (*SPECIAL, bits_of(1.0), bits_of(0.0))


def bits_each(values: np.ndarray) -> list[int]:
    return values.astype(np.float64).view(np.uint64).tolist()


# Each series in one style, as series are; any bits among them.
VALUES = st.one_of(
    WORDS.map(lambda words: words.view(np.uint64).tolist()),
    st.binary(min_size=1, max_size=40).map(lambda drawn: [ODD[byte % len(ODD)] for byte in drawn]),
    WORDS.map(lambda words: bits_each(words >> 9)),
    WORDS.map(lambda words: bits_each((words % 2_000_001 - 1_000_000) / 1_000)),
    st.lists(st.floats(allow_nan=False).map(bits_of), min_size=1, max_size=40),
    st.builds(lambda bits, count: [bits] * count, BITS, st.integers(1, 40)),
)
# Any times, or regular ones, which series share.
TIMES = st.one_of(
    WORDS.map(lambda words: sorted(set(words.tolist()))),
    st.builds(
        lambda first, step, count: [first + step * i for i in range(count)],
        st.sampled_from([0, 1_700_000_000_000]),
        st.sampled_from([1, 15_000]),
        st.integers(1, 40),
    ),
)
SERIES = st.builds(lambda times, bits: list(zip(times, bits, strict=False)), TIMES, VALUES)


def runs_of(series: dict[int, list[tuple[int, int]]]) -> Runs:
    numbers = sorted(series)
    samples = [sample for number in numbers for sample in series[number]]
    return Runs(
        np.array(numbers, dtype=np.uint32),
        np.cumsum([0] + [len(series[number]) for number in numbers], dtype=np.int64),
        np.array([time for time, _ in samples], dtype=np.int64),
        np.array([bits for _, bits in samples], dtype=np.uint64).view(np.float64),
    )


def decoded(data: bytes, frames: tuple[page_codec.Frame, ...]) -> dict[int, list[tuple[int, int]]]:
    series: dict[int, list[tuple[int, int]]] = {}
    for frame in frames:
        which = decode_series(frame, data)
        to = np.cumsum(which.counts, dtype=np.int64) - which.counts
        time, value = np.empty(frame.samples, dtype=np.int64), np.empty(frame.samples, dtype=np.float64)
        decode_samples(frame, data, which, to=to, time=time, value=value)
        samples = list(zip(time.tolist(), value.view(np.uint64).tolist(), strict=True))
        assert frame.samples == len(samples) == which.counts.sum()
        assert (frame.first_number, frame.last_number) == (which.number[0], which.number[-1])
        for number, count in zip(which.number.tolist(), which.counts.tolist(), strict=True):
            assert number not in series
            series[number], samples = samples[:count], samples[count:]
    return series


@given(st.dictionaries(st.integers(0, 2**32 - 2), SERIES, min_size=1, max_size=12))
@example({0: [(-(2**63), 0), (2**63 - 1, 2**64 - 1)], 2**32 - 2: [(-(2**63), 2**63), (2**63 - 1, 0)]})
def test_runs_are_restored_bit_for_bit(series: dict[int, list[tuple[int, int]]]) -> None:
    assert decoded(*encode(runs_of(series))) == series


@given(st.dictionaries(st.integers(0, 1000), SERIES, min_size=1, max_size=12), st.integers(1, 50))
def test_frames_are_cut_between_series_and_lose_nothing(series: dict[int, list[tuple[int, int]]], most: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_codec, "SAMPLES_PER_FRAME", most)
        data, frames = encode(runs_of(series))
    assert decoded(data, frames) == series
    assert all(frame.samples <= most or frame.series == 1 for frame in frames)
    joined = [one.samples + two.samples for one, two in pairwise(frames)]
    assert all(samples > most for samples in joined), "frames are smaller than necessary"


@given(st.dictionaries(st.integers(0, 1000), SERIES, min_size=1, max_size=12), st.data())
def test_runs_that_are_not_wanted_are_left_out_and_change_no_other(
    series: dict[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    wanted = data.draw(st.sets(st.sampled_from(sorted(series)), min_size=1))
    page, (frame,) = encode(runs_of(series))
    which = decode_series(frame, page)
    expected = [sample for number in sorted(wanted) for sample in series[number]]
    time, value = np.empty(len(expected), dtype=np.int64), np.empty(len(expected), dtype=np.float64)
    counts = np.where(np.isin(which.number, sorted(wanted)), which.counts, 0).astype(np.int64)
    to = np.where(counts > 0, np.cumsum(counts) - counts, -1)
    decode_samples(frame, page, which, to=to, time=time, value=value)
    assert list(zip(time.tolist(), value.view(np.uint64).tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    "value", [-0.0, math.inf, -math.inf, math.nan, 5e-324, 2.0**53, 2.0**53 + 2, -(2.0**53) + 1, 1e300]
)
@pytest.mark.parametrize("beside", [0.0, 1.0, 0.25, 0.1, 1e-9])
def test_a_value_that_is_not_a_small_integer_keeps_its_bits_beside_those_that_are(value: float, beside: float) -> None:
    before, after = [bits_of(beside), bits_of(value)], [bits_of(value), bits_of(beside)]
    series = {3: list(enumerate(before)), 4: list(enumerate(after))}
    assert decoded(*encode(runs_of(series))) == series


def bytes_a_sample(times: np.ndarray, values: np.ndarray) -> float:
    """For a page of series with as many samples each: `times` and `values` have a line a series."""
    series, samples = values.shape
    runs = Runs(
        np.arange(series, dtype=np.uint32),
        np.arange(series + 1, dtype=np.int64) * samples,
        np.ascontiguousarray(times).ravel(),
        np.ascontiguousarray(values).ravel(),
    )
    data, _ = encode(runs)
    return len(data) / values.size


def scraped_together(series: int, samples: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    times = 1_700_000_000_000 + 15_000 * np.arange(samples) + rng.integers(0, 20, samples)
    return np.tile(times, (series, 1))


def test_times_that_series_share_cost_next_to_nothing() -> None:
    assert bytes_a_sample(scraped_together(5000, 8), np.ones((5000, 8))) < 0.02


def test_counters_among_gauges_cost_as_little_as_alone() -> None:
    rng = np.random.default_rng(4)
    counters = np.cumsum(rng.poisson(20, (4000, 16)), axis=1) + rng.integers(0, 2**30, (4000, 1)).astype(float)
    gauges = np.round(rng.uniform(0, 100, (4000, 1)) + np.cumsum(rng.normal(0, 1, (4000, 16)), axis=1), 2)
    noise = rng.uniform(0, 1, (400, 16))
    mixed = rng.permutation(np.concatenate([counters, gauges, noise]))
    alone = [bytes_a_sample(scraped_together(len(some), 16), some) * some.size for some in (counters, gauges, noise)]
    together = bytes_a_sample(scraped_together(len(mixed), 16), mixed) * mixed.size
    assert together < 1.15 * sum(alone)
    assert alone[0] / counters.size < 1.2
    assert alone[1] / gauges.size < 1.6

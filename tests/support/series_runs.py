"""Runs of series with a model of them, and strategies for arbitrary runs."""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from strandline.store.series_run import SeriesRun

Key = tuple[int, int, int]  # Metric, high and low half of the key's hash.
Model = Mapping[Key, Mapping[int, int]]  # The bits of each series' values by their times.

LEAST, GREATEST = -(2**63), 2**63 - 1
STALE = 0x7FF0_0000_0000_0002
ODD_BITS = (
    STALE,
    0x7FF8_0000_0000_0001,  # What Prometheus writes for an ordinary NaN.
    0x7FF0_0000_0000_0001,
    0xFFFF_FFFF_FFFF_FFFF,
    0xFFF0_0000_0000_0001,
    0x7FF0_0000_0000_0000,
    0xFFF0_0000_0000_0000,
    0x8000_0000_0000_0000,
    0x0000_0000_0000_0001,
    0x7FEF_FFFF_FFFF_FFFF,
)


def run_of(model: Model) -> SeriesRun:
    """A run with the content of the model."""
    keys = sorted(model)
    columns = np.array(keys, dtype=np.uint64).reshape(-1, 3).T.copy()
    times = [sorted(model[key]) for key in keys]
    first = np.cumsum([0, *map(len, times)], dtype=np.int64)
    time = np.array([sample for some in times for sample in some], dtype=np.int64)
    bits = [model[key][sample] for key, some in zip(keys, times, strict=True) for sample in some]
    return SeriesRun(*columns, first, time, np.array(bits, dtype=np.uint64).view(np.float64))


def model_of(run: SeriesRun) -> dict[Key, dict[int, int]]:
    """The content of a run. Also checks the guarantees of `SeriesRun`."""
    keys = list(zip(run.metric.tolist(), run.key_high.tolist(), run.key_low.tolist(), strict=True))
    assert keys == sorted(set(keys))
    bounds = run.first_sample.tolist()
    assert (len(bounds), bounds[0], bounds[-1], len(run.value)) == (len(keys) + 1, 0, len(run.time), len(run.time))
    bits = run.value.view(np.uint64)
    model = {}
    for key, (start, end) in zip(keys, pairwise(bounds), strict=True):
        times = run.time[start:end].tolist()
        assert times
        assert times == sorted(set(times))
        model[key] = dict(zip(times, bits[start:end].tolist(), strict=True))
    return model


def are_same(one: SeriesRun, other: SeriesRun) -> bool:
    """Whether two runs are equal, bit for bit."""
    return all(
        np.array_equal(left, right)
        for left, right in (
            (one.metric, other.metric),
            (one.key_high, other.key_high),
            (one.key_low, other.key_low),
            (one.first_sample, other.first_sample),
            (one.time, other.time),
            (one.value.view(np.uint64), other.value.view(np.uint64)),
        )
    )


def bits_of(value: float) -> int:
    """A value as its 64 bits."""
    return int(np.array([value]).view(np.uint64)[0])


# Numbers are drawn as bytes: a list of them would take Hypothesis longer to draw than the codec to encode. Strategies
# are made once, for each number of samples: Hypothesis would look through each new one before it draws from it.
_STARTS, _INTERVALS = st.integers(-(2**60), 2**60), st.integers(1, 2**40)
_WIDTHS, _DIGITS = st.sampled_from([1, 2, 8, 30, 52]), st.integers(0, 10)
_ODD = st.sampled_from(ODD_BITS)
_LATENESS = (0, 0, 0, 0, 1, 2, -1, 7_000, 2**41)


@cache
def _words(count: int) -> st.SearchStrategy[np.ndarray]:
    return st.binary(min_size=8 * count, max_size=8 * count).map(lambda drawn: np.frombuffer(drawn, dtype=np.int64))


@cache
def _regular_times(count: int) -> st.SearchStrategy[list[int]]:
    """Scrapes at an interval, some a little early or late, some missing."""
    return st.builds(
        lambda start, interval, drawn: [start + at * interval + _LATENESS[step % 9] for at, step in enumerate(drawn)],
        _STARTS,
        _INTERVALS,
        st.binary(min_size=count, max_size=count),
    )


@cache
def _values(count: int) -> st.SearchStrategy[list[int]]:
    """One value for each sample, as bits: counters, rounded numbers, some special ones among them, or anything."""
    rounded = st.builds(
        lambda words, bits, digits: [bits_of((word >> (64 - bits)) / 10**digits) for word in words.tolist()],
        _words(count),
        _WIDTHS,
        _DIGITS,
    )
    odd = st.dictionaries(st.integers(0, count - 1), _ODD, max_size=2)
    return st.one_of(
        st.builds(
            lambda numbers, instead: [instead.get(at, number) for at, number in enumerate(numbers)], rounded, odd
        ),
        _words(count).map(lambda words: words.view(np.uint64).tolist()),
        st.builds(lambda value: [value] * count, st.integers(0, 2**64 - 1) | _ODD),
        st.binary(min_size=count, max_size=count).map(
            lambda drawn: [ODD_BITS[number % len(ODD_BITS)] for number in drawn]
        ),
    )


_REGULAR_TIMES = st.integers(1, 40).flatmap(_regular_times)
_ANY_TIMES = st.lists(st.integers(LEAST, GREATEST) | st.sampled_from([LEAST, GREATEST]), min_size=1, max_size=8)
# None stands for the times that series share.
_TIMES = st.one_of(st.none(), _ANY_TIMES, _REGULAR_TIMES)


HASHES = st.integers(0, 2) | st.integers(0, 2**64 - 1)
KEYS = st.tuples(HASHES, HASHES, HASHES)
_KEY_SETS = [st.lists(KEYS, min_size=least, max_size=6, unique=True) for least in (0, 1)]


@st.composite
def models(draw: st.DrawFn, *, least_series: int = 0) -> dict[Key, dict[int, int]]:
    """Any run, as a model: small and large numbers of samples, shared and separate times, any bits as values."""
    shared = draw(_REGULAR_TIMES)
    model = {}
    for key in draw(_KEY_SETS[least_series]):
        drawn = draw(_TIMES)
        times = sorted(set(shared if drawn is None else drawn))
        model[key] = dict(zip(times, draw(_values(len(times))), strict=True))
    return model

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.digest import digest
from strandline.store import segment_codec
from strandline.store.merging import merge_runs
from strandline.store.rows import Segment
from strandline.store.segment_codec import (
    MAX_SAMPLES,
    TARGET_BYTES,
    decode_directory,
    decode_segment,
    encode_run,
    runs_checksum,
    select,
)
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesKey, SeriesRun
from strandline.time_range import ALL_TIMES, TimeRange
from support.scraped_runs import scraped_run
from support.series_runs import GREATEST, LEAST, ODD_BITS, STALE, are_same, bits_of, model_of, models, run_of

pytestmark = pytest.mark.unit

TIMES = st.integers(LEAST, GREATEST)
TARGETS = st.sampled_from([1, 600, 900, 2_000, TARGET_BYTES])


def decoded(segments: list[Segment]) -> list[SeriesRun]:
    return [decode_segment(segment.data, named=f"{number}") for number, segment in enumerate(segments)]


def one_series(time: np.ndarray, value: np.ndarray) -> SeriesRun:
    hashes = np.array([7], dtype=np.uint64)
    return SeriesRun(hashes, hashes, hashes, np.array([0, len(time)], dtype=np.int64), time, value)


def counter(samples: int) -> SeriesRun:
    rng = np.random.default_rng(samples)
    return one_series(
        1_790_000_000_000 + 100 * np.arange(samples, dtype=np.int64) + rng.integers(0, 3, samples),
        np.cumsum(rng.poisson(50, samples)).astype(np.float64),
    )


@given(models(), TARGETS)
def test_any_run_is_decoded_bit_for_bit(model: dict, target_bytes: int) -> None:
    run = run_of(model)
    segments = encode_run(run, target_bytes=target_bytes)
    assert are_same(merge_runs(decoded(segments)), run)


@settings(max_examples=40)
@given(models(), TARGETS)
def test_segments_are_named_by_their_first_series_and_are_in_order(model: dict, target_bytes: int) -> None:
    segments = encode_run(run_of(model), target_bytes=target_bytes)
    parts = [model_of(part) for part in decoded(segments)]
    for segment, part in zip(segments, parts, strict=True):
        assert segment.first == SeriesKey(*min(part)).to_bytes()
    for (previous, part), (other, next_part) in pairwise(zip(segments, parts, strict=True)):
        assert other.seq == (previous.seq + 1 if previous.first == other.first else 0)
        assert max(part) <= min(next_part)
        if max(part) == min(next_part):
            assert max(part[max(part)]) < min(next_part[min(next_part)])
    assert all(segment.seq == 0 for segment in segments[:1])


@settings(max_examples=40)
@given(models())
def test_the_same_run_gives_the_same_bytes(model: dict) -> None:
    assert encode_run(run_of(model)) == encode_run(run_of(model))


def test_no_series_are_no_segments() -> None:
    assert encode_run(SeriesRun.empty()) == []


@pytest.mark.parametrize("bits", ODD_BITS, ids=hex)
def test_an_odd_value_is_kept_at_any_position_and_does_not_make_a_counter_costly(bits: int) -> None:
    run = counter(240)
    (plain,) = encode_run(run)
    for at in (0, 1, 120, 239):
        value = run.value.copy()
        value.view(np.uint64)[at] = bits
        (segment,) = encode_run(replace(run, value=value))
        found = decode_segment(segment.data, named="odd").value
        assert found.view(np.uint64).tolist() == value.view(np.uint64).tolist()
        assert len(segment.data) < len(plain.data) + 80


def test_odd_values_return_to_their_series_when_some_are_left_out() -> None:
    times = range(32)
    model = {(1, 1, key): {time: bits_of(float(key * time)) for time in times} for key in range(6)}
    for key in (0, 2, 3, 5):
        model[(1, 1, key)][key * 5] = STALE + key
    (segment,) = encode_run(run_of(model))
    for left_out in range(6):
        keys = [key for key in model if key[2] != left_out]
        wanted = WantedSeries.of(SeriesKey(*key) for key in keys)
        assert model_of(select(segment.data, wanted, TimeRange(0, 31), named="x")) == {key: model[key] for key in keys}


@pytest.mark.parametrize("digits", range(10))
def test_rounded_numbers_are_small_whatever_their_digits(digits: int) -> None:
    rng = np.random.default_rng(digits)
    walk = 10**digits + np.cumsum(rng.integers(-2, 3, 20_000))
    run = one_series(np.arange(20_000, dtype=np.int64), walk / 10**digits)
    segments = encode_run(run)
    assert are_same(merge_runs(decoded(segments)), run)
    assert sum(len(segment.data) for segment in segments) < 0.4 * 20_000


def test_scrape_jitter_costs_no_more_than_its_size() -> None:
    rng = np.random.default_rng(1)
    time = 1_790_000_000_000 + 15_000 * np.arange(50_000) + rng.integers(-2, 3, 50_000)
    run = one_series(time, np.zeros(50_000))
    segments = encode_run(run)
    # One of five numbers has log2(5) bits of information; the difference of two of them would have more.
    assert sum(len(segment.data) for segment in segments) < 1.05 * 50_000 * np.log2(5) / 8
    assert are_same(merge_runs(decoded(segments)), run)


def test_series_that_were_scraped_together_store_their_times_once() -> None:
    rng = np.random.default_rng(1)
    times = np.cumsum(rng.integers(1, 2**40, 1_000))
    alone = {(1, 1, 0): dict.fromkeys(times.tolist(), 0)}
    together = {(1, 1, key): dict.fromkeys(times.tolist(), 0) for key in range(50)}
    (one,), (fifty,) = encode_run(run_of(alone)), encode_run(run_of(together))
    assert len(fifty.data) - len(one.data) < 50 * 20
    assert model_of(decode_segment(fifty.data, named="x")) == together


def test_series_whose_times_differ_in_one_sample_keep_their_own() -> None:
    times = list(range(0, 240_000, 1_000))
    model = {(1, 1, 240): dict.fromkeys(times, 0)}
    for at in range(240):
        model[(1, 1, at)] = dict.fromkeys([*times[:at], times[at] + 1, *times[at + 1 :]], 0)
    assert model_of(merge_runs(decoded(encode_run(run_of(model))))) == model


def test_series_whose_times_begin_like_those_of_another_keep_their_own() -> None:
    model = {(1, 1, key): dict.fromkeys(range(300 - key), 0) for key in range(300)}
    assert model_of(merge_runs(decoded(encode_run(run_of(model))))) == model


def test_mixed_series_take_less_than_the_bytes_allowed() -> None:
    run = scraped_run(3_000, 240)
    segments = encode_run(run)
    stored = sum(len(segment.data) + len(segment.first) for segment in segments)
    assert stored / run.samples < 0.75
    assert are_same(merge_runs(decoded(segments)), run)
    assert all(TARGET_BYTES / 4 < len(segment.data) <= 2 * TARGET_BYTES for segment in segments[:-1])


def test_a_series_of_millions_of_samples_spans_numbered_rows() -> None:
    run = counter(3_000_000)
    segments = encode_run(run)
    assert [segment.seq for segment in segments] == list(range(len(segments)))
    assert len({segment.first for segment in segments}) == 1
    assert all(TARGET_BYTES / 2 < len(segment.data) < 2 * TARGET_BYTES for segment in segments[:-1])
    assert are_same(merge_runs(decoded(segments)), run)


def test_samples_that_compress_to_nothing_do_not_make_a_segment_of_millions() -> None:
    run = one_series(np.arange(1_000_000, dtype=np.int64), np.zeros(1_000_000))
    segments = encode_run(run)
    parts = decoded(segments)
    assert max(part.samples for part in parts) <= MAX_SAMPLES
    assert len(segments) <= 8
    assert are_same(merge_runs(parts), run)


@pytest.mark.parametrize("samples_a_series", [1, 2, 50, 100_000])
def test_segments_stay_within_bounds_where_nothing_can_be_compressed(samples_a_series: int) -> None:
    rng = np.random.default_rng(samples_a_series)
    series = 100_000 // samples_a_series
    columns = np.sort(rng.integers(0, 2**64, (3, series), dtype=np.uint64))
    time = np.sort(rng.integers(LEAST, GREATEST, (series, samples_a_series)))
    value = rng.integers(0, 2**64, time.size, dtype=np.uint64).view(np.float64)
    run = SeriesRun(*columns, np.arange(0, time.size + 1, samples_a_series), time.ravel(), value)
    segments = encode_run(run)
    assert are_same(merge_runs(decoded(segments)), run)
    assert all(TARGET_BYTES / 4 < len(segment.data) <= 2 * TARGET_BYTES for segment in segments[:-1])


def test_bounds_hold_where_data_that_compresses_well_turns_into_data_that_does_not() -> None:
    rng = np.random.default_rng(1)
    value = np.zeros(900_000)
    value[500_000:600_000] = rng.random(100_000)
    value[800_000:] = rng.random(100_000)
    run = one_series(np.arange(900_000, dtype=np.int64), value)
    segments = encode_run(run)
    assert max(len(segment.data) for segment in segments) <= 2 * TARGET_BYTES
    assert are_same(merge_runs(decoded(segments)), run)


def test_series_of_ordinary_length_are_not_split() -> None:
    run = scraped_run(2_000, 240)
    parts = decoded(encode_run(run))
    assert len(parts) > 2
    assert sum(map(len, parts)) == len(run)


def test_a_long_series_fills_the_segment_of_the_short_one_before_it() -> None:
    long, short = counter(500_000), counter(10)
    hashes = np.array([1, 2], dtype=np.uint64)
    time, value = (np.concatenate(columns) for columns in ((short.time, long.time), (short.value, long.value)))
    run = SeriesRun(hashes, hashes, hashes, np.array([0, 10, 500_010], dtype=np.int64), time, value)
    segments = encode_run(run)
    assert all(TARGET_BYTES / 2 < len(segment.data) < 2 * TARGET_BYTES for segment in segments[:-1])
    assert [segment.seq for segment in segments] == [0, *range(len(segments) - 1)]
    assert are_same(merge_runs(decoded(segments)), run)


@settings(max_examples=40)
@given(models(least_series=1))
def test_a_directory_lists_the_content_of_a_segment(model: dict) -> None:
    for segment in encode_run(run_of(model), target_bytes=900):
        run = decode_segment(segment.data, named="x")
        directory = decode_directory(segment.data, named="x")
        assert len(directory) == len(run)
        for column in ("metric", "key_high", "key_low"):
            assert getattr(directory, column).tolist() == getattr(run, column).tolist()
        assert directory.counts.tolist() == np.diff(run.first_sample).tolist()
        assert (directory.least_time, directory.greatest_time) == (run.time.min(), run.time.max())


def test_a_directory_is_read_without_times_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    (segment,) = encode_run(counter(100))

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(segment_codec, "unpack_times", refuse)
    monkeypatch.setattr(segment_codec, "unpack_values", refuse)
    directory = decode_directory(segment.data, named="x")
    assert directory.counts.tolist() == [100]
    wanted = WantedSeries.of([SeriesKey(7, 7, 7)])
    assert len(select(segment.data, wanted, TimeRange(directory.greatest_time + 1, GREATEST), named="x")) == 0
    assert len(select(segment.data, wanted, TimeRange(LEAST, directory.least_time - 1), named="x")) == 0
    assert len(select(segment.data, WantedSeries.of([SeriesKey(7, 7, 8)]), ALL_TIMES, named="x")) == 0


def test_a_directory_overlaps_times_from_its_least_to_its_greatest() -> None:
    (segment,) = encode_run(one_series(np.array([10, 20]), np.zeros(2)))
    directory = decode_directory(segment.data, named="x")
    overlapping = [(10, 10), (20, 20), (0, 10), (20, 30), (12, 13), (0, 99)]
    assert all(directory.overlaps(*times) for times in overlapping)
    assert not any(directory.overlaps(*times) for times in [(0, 9), (21, 30)])


@given(models(least_series=1), st.data())
def test_selecting_returns_exactly_the_wanted_series_at_the_wanted_times(model: dict, data: st.DataObject) -> None:
    keys = data.draw(st.sets(st.sampled_from(sorted(model))))
    unknown = data.draw(st.sets(st.tuples(*[st.integers(0, 2**64 - 1)] * 3), max_size=3)) - set(model)
    ends = [time for samples in model.values() for time in (min(samples), max(samples))]
    least, greatest = sorted(data.draw(st.lists(TIMES | st.sampled_from(ends), min_size=2, max_size=2)))
    wanted = WantedSeries.of(SeriesKey(*key) for key in keys | unknown)
    assert len(wanted) == len(keys | unknown)
    segments = encode_run(run_of(model), target_bytes=data.draw(TARGETS))
    found = merge_runs([select(segment.data, wanted, TimeRange(least, greatest), named="x") for segment in segments])
    expected = {
        key: kept
        for key in keys
        if (kept := {time: bits for time, bits in model[key].items() if least <= time <= greatest})
    }
    assert model_of(found) == expected


def test_selecting_leaves_out_a_single_sample_at_either_end() -> None:
    model = {(1, 1, key): {time: time for time in range(10 * key, 10 * key + 5)} for key in range(3)}
    (segment,) = encode_run(run_of(model))
    wanted = WantedSeries.of(SeriesKey(*key) for key in model)
    for least in range(-1, 26):
        for greatest in range(least, 26):
            expected = {
                key: kept
                for key in model
                if (kept := {time: bits for time, bits in model[key].items() if least <= time <= greatest})
            }
            assert model_of(select(segment.data, wanted, TimeRange(least, greatest), named="x")) == expected


@given(models(least_series=1), TIMES, TIMES)
def test_without_values_there_are_the_same_times_and_staleness_markers(model: dict, one: int, other: int) -> None:
    times = TimeRange(*sorted((one, other)))
    wanted = WantedSeries.of(SeriesKey(*key) for key in model)
    for segment in encode_run(run_of(model)):
        expected = model_of(select(segment.data, wanted, times, named="x"))
        found = model_of(select(segment.data, wanted, times, named="x", with_values=False))
        assert found == {
            key: {time: bits if bits == STALE else 0 for time, bits in samples.items()}
            for key, samples in expected.items()
        }


def test_the_checksum_of_a_group_is_over_its_segments_in_order() -> None:
    one, other = (encode_run(counter(samples))[0] for samples in (10, 11))
    words = b"".join((digest(segment.data[8:]) & (2**64 - 1)).to_bytes(8, "little") for segment in (one, other))
    assert runs_checksum([one, other]) == digest(words).to_bytes(16, "little")
    assert len({runs_checksum(rows) for rows in ([], [one], [other], [one, other], [other, one], [one, one])}) == 6


def test_an_invalid_run_is_refused_before_it_is_stored() -> None:
    run = run_of({(1, 1, key): {1: 0, 2: 0} for key in range(3)})
    for broken, reason in (
        (
            replace(run, metric=run.metric[::-1] + np.arange(3, dtype=np.uint64)[::-1]),
            "series 1 of a run is not above",
        ),
        (replace(run, key_low=np.zeros(3, dtype=np.uint64)), "series 1 of a run is not above"),
        (replace(run, time=np.array([1, 2, 1, 1, 1, 2])), "the times of series 1 of a run are not ascending"),
        (replace(run, time=np.array([1, 2, 1, 2, 2, 1])), "the times of series 2 of a run are not ascending"),
        (replace(run, first_sample=np.array([0, 2, 2, 6])), "a series of a run has no samples"),
        (replace(run, first_sample=np.array([0, 2, 6])), "a series of a run has no samples"),
        (replace(run, first_sample=np.array([0, 2, 4, 5])), "don't cover its 6 times and 6 values"),
        (replace(run, first_sample=np.array([1, 2, 4, 6])), "don't cover its 6 times and 6 values"),
        (replace(run, value=run.value[1:]), "don't cover its 6 times and 5 values"),
    ):
        with pytest.raises(ValueError, match=reason):
            encode_run(broken)

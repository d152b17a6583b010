"""Encoding one group of one bucket."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.store.group_write import encode_group
from strandline.store.late_samples import late_samples
from strandline.store.rows import GroupRow, IndexBucketRows, LateSamples
from strandline.store.segment_codec import VERSION, decode_segment, runs_checksum
from strandline.store.series_run import SeriesRun
from support.series_runs import are_same, bits_of, model_of, models, run_of

pytestmark = pytest.mark.unit

MINUTE, HOUR = 60_000, 3_600_000
LEAST, GREATEST = -(2**63), 2**63 - 1
# Divisors of an hour, an hour, and whole hours that divide a day.
INTERVALS = [1_000, 15 * MINUTE, HOUR, 2 * HOUR, 24 * HOUR]


def late(*times: int, bucket: int, interval: int = HOUR) -> dict[int, int]:
    found = late_samples(np.array(times, dtype=np.int64), bucket, interval)
    return {late_hour.hour: late_hour.samples for late_hour in found}


def test_a_sample_is_late_once_its_hour_counted_as_complete() -> None:
    assert late(100 * HOUR - 1, 100 * HOUR, 101 * HOUR - 1, bucket=100) == {99: 1}


def test_a_sample_from_the_future_is_not_late() -> None:
    assert late(101 * HOUR, 500 * HOUR, bucket=100) == {}
    assert late_samples(np.array([101 * HOUR]), 100, HOUR) == ()


def test_late_samples_are_counted_hour_by_hour_and_the_oldest_hour_comes_first() -> None:
    times = np.array([98 * HOUR, 5 * HOUR, 98 * HOUR + 7, 100 * HOUR, 99 * HOUR], dtype=np.int64)
    assert late_samples(times, 100, HOUR) == (LateSamples(5, 1), LateSamples(98, 2), LateSamples(99, 1))


def test_with_short_buckets_an_hour_is_complete_with_its_last_one() -> None:
    of_hour_10 = 10 * HOUR + 5
    assert late(of_hour_10, bucket=43, interval=15 * MINUTE) == {}
    assert late(of_hour_10, bucket=44, interval=15 * MINUTE) == {10: 1}


def test_with_long_buckets_an_hour_is_complete_with_the_bucket_around_it() -> None:
    assert late(10 * HOUR, 11 * HOUR, bucket=5, interval=2 * HOUR) == {}
    assert late(9 * HOUR, 10 * HOUR, bucket=5, interval=2 * HOUR) == {9: 1}


def test_hours_before_1970_are_counted_from_it() -> None:
    assert late(-1, 0, bucket=0) == {-1: 1}
    assert late(-HOUR, -HOUR - 1, bucket=-1) == {-2: 1}
    assert late(-1, bucket=-1) == {}


def test_the_lowest_and_highest_times_are_late_or_not_like_others() -> None:
    assert late(GREATEST, bucket=10**6) == {}
    assert late(LEAST, bucket=10**6) == {LEAST // HOUR: 1}


def test_without_samples_none_is_late() -> None:
    assert late(bucket=100) == {}


TIMES = st.one_of(st.integers(-3 * HOUR, 60 * HOUR), st.integers(LEAST, GREATEST), st.sampled_from([LEAST, GREATEST]))


@given(st.lists(TIMES, max_size=8), st.integers(-30, 30), st.sampled_from(INTERVALS))
def test_samples_are_late_if_their_hours_last_millisecond_is_in_an_earlier_bucket(
    times: list[int], hour: int, interval: int
) -> None:
    bucket = hour * HOUR // interval
    hours = [time // HOUR for time in times]
    expected = Counter(sample_hour for sample_hour in hours if ((sample_hour + 1) * HOUR - 1) // interval < bucket)
    assert late(*times, bucket=bucket, interval=interval) == expected


@settings(max_examples=15)  # The codec has its own tests.
@given(models())
def test_the_run_and_its_sums_are_written(model: dict[tuple[int, int, int], dict[int, int]]) -> None:
    run = run_of(model)
    written = encode_group(run, 100, 3, "attempt", HOUR)
    times = [time for samples in model.values() for time in samples]
    assert (written.bucket, written.group, written.attempt) == (100, 3, "attempt")
    assert (written.series, written.samples) == (len(model), len(times))
    assert (written.least_time, written.greatest_time) == (min(times, default=None), max(times, default=None))
    assert written.checksum == runs_checksum(written.segments)
    assert written.late == late_samples(run.time, 100, HOUR)
    decoded: dict[tuple[int, int, int], dict[int, int]] = {}
    for segment in written.segments:
        for key, samples in model_of(decode_segment(segment.data, named="test")).items():
            decoded.setdefault(key, {}).update(samples)
    assert decoded == model


def test_the_same_run_gives_the_same_segments_whatever_the_attempt() -> None:
    run = run_of({(1, 2, series): {5: bits_of(1.5), 9: bits_of(2.0)} for series in range(50)})
    one, other = (encode_group(run, 100, 3, attempt, HOUR) for attempt in ("one", "other"))
    assert one.segments == other.segments
    assert one.checksum == other.checksum


def test_a_large_group_has_several_segments_and_the_checksum_is_over_all() -> None:
    bits = np.random.default_rng(1).integers(0, 2**63, (2_000, 10), dtype=np.uint64).tolist()
    written = encode_group(
        run_of({(1, 2, n): dict(enumerate(bits_of_series)) for n, bits_of_series in enumerate(bits)}), 100, 3, "a", HOUR
    )
    assert len(written.segments) > 1
    assert written.checksum == runs_checksum(written.segments)
    assert written.stored.segments == len(written.segments)


def test_a_group_without_a_sample_has_a_row_and_no_segment() -> None:
    written = encode_group(SeriesRun.empty(), 100, 3, "attempt", HOUR)
    assert are_same(run_of({}), SeriesRun.empty())
    row = written.stored.row(100, "attempt", expires=9, data_expires=8, written_by="test", written_at=7, index=None)
    assert row == GroupRow(
        bucket=100,
        group=3,
        attempt="attempt",
        segments=0,
        series=0,
        samples=0,
        least_time=None,
        greatest_time=None,
        checksum=runs_checksum([]),
        codec_version=VERSION,
        expires=9,
        data_expires=8,
        written_by="test",
        written_at=7,
    )


def test_the_row_contains_the_result_of_the_write_and_the_owner() -> None:
    run = run_of({(1, 2, 3): {99 * HOUR: 0, 100 * HOUR: 0}, (1, 2, 4): {100 * HOUR + 5: 0}})
    index = IndexBucketRows(2, b"sum", "o.1.1")
    written = encode_group(run, 100, 3, "attempt", HOUR)
    row = written.stored.row(100, "a", expires=9, data_expires=8, written_by="host:1", written_at=7, index=index)
    assert (row.segments, row.series, row.samples) == (1, 2, 3)
    assert (row.least_time, row.greatest_time) == (99 * HOUR, 100 * HOUR + 5)
    assert row.late == (LateSamples(99, 1),)
    assert (row.expires, row.data_expires, row.written_by, row.written_at) == (9, 8, "host:1", 7)
    assert row.index == index
    assert not row.superseded

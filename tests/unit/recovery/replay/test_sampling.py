"""Which records are sampled before a wave, and the estimate based on them."""

from collections.abc import Sequence

import pytest

from strandline.recovery.replay.sampling import MAX_SAMPLED, MIN_SAMPLED, sample_job, sampled_offsets
from support import replays
from support.replays import LogRecord, labels, leased_job

pytestmark = pytest.mark.unit


def test_few_records_of_a_small_range_and_a_limited_number_of_a_large_one_are_sampled() -> None:
    assert sampled_offsets(5, 5) == []
    assert sampled_offsets(5, 7) == [5, 6]
    assert len(sampled_offsets(0, 100)) == MIN_SAMPLED
    assert len(sampled_offsets(0, 10**9)) == MAX_SAMPLED


def test_the_offsets_are_evenly_distributed_from_the_first_on() -> None:
    assert sampled_offsets(100, 500) == [100, 166, 233, 300, 366, 433]


def test_a_few_records_are_extrapolated_to_the_whole_job() -> None:
    job = leased_job(0, 1000)
    record = LogRecord(0, 0, ((labels("up", "a"), ((1, 1.0), (2, 1.0))),))
    requests = []

    def sampler(shard: int, offsets: Sequence[int], end: int) -> Sequence[bytes]:
        requests.append((shard, list(offsets), end))
        return [record.value, replays.POISON]

    found = sample_job(job, replays.settings(), sampler)
    assert requests == [(0, sampled_offsets(0, 1000), 1000)]
    assert (found.samples_per_record, found.samples) == (1.0, 1000.0)
    assert found.bytes_per_record == (len(record.value) + len(replays.POISON)) / 2


def test_a_range_without_a_record_has_nothing_to_divide() -> None:
    found = sample_job(leased_job(0, 1000), replays.settings(), lambda *_: [])
    assert (found.samples, found.bounds(4, 1)) == (0.0, ())


def test_no_record_is_sampled_from_an_empty_range() -> None:
    def sampler(*_: object) -> Sequence[bytes]:
        raise AssertionError

    assert sample_job(leased_job(7, 7), replays.settings(), sampler).records == 0

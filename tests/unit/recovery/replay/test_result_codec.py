"""The results of a job are decoded as they were encoded, and changed bytes are detected."""

import json
from dataclasses import replace
from itertools import pairwise

import cramjam
import numpy as np
import pytest

from strandline.clock import ManualClock
from strandline.digest import digest
from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.recovery.replay.faults import FaultyRecord, decode_faults, encode_faults
from strandline.recovery.replay.job_result import FAULTS, KEYS, RESULT, SUMMARY, JobResult, StoredGroup, attempt_of
from strandline.recovery.replay.key_codec import (
    KEYS_PER_ROW,
    MAX_ROW_BYTES,
    decode_keys,
    decode_summary,
    encode_keys,
    encode_summary,
    key_rows,
    row_end,
)
from strandline.recovery.replay.memory_runner import MemoryRunner
from strandline.recovery.replay.record_counts import RecordCounts
from strandline.recovery.replay.replay_input import RESULT_MARGIN_MS, SeriesBound, data_life
from strandline.recovery.replay.result_codec import (
    decode_result,
    encode_result,
    read_faults,
    read_result,
    read_summary,
)
from strandline.recovery.replay.sections import ResultDamaged, pack_sections, unpack_sections
from strandline.store.jobs import JobResultOf
from strandline.store.rows import LateSamples, Lifetime
from support import replays
from support.replays import HOUR, DictStore, LogRecord, labels, leased_job, source_of

pytestmark = pytest.mark.unit

JOB = leased_job(0, 9)
PLACE = JobResultOf(JOB.shard, JOB.bucket, attempt_of(JOB))
RECORDS = [
    LogRecord(0, 1000 * HOUR, ((labels("up", "a"), ((1000 * HOUR, 1.0),)), (labels("up", "b"), ((999 * HOUR, 2.0),)))),
    LogRecord(3, 1000 * HOUR, None),
    LogRecord(4, 1000 * HOUR, ((labels("load", "c"), ((1000 * HOUR, 1.0),)),)),
]


@pytest.fixture
def store() -> DictStore:
    """One job, done, in several units."""
    made = DictStore()
    bounds = [SeriesBound(group, 0, 0, 0) for group in (1, 2, 3)]
    runner = MemoryRunner(made, source_of({0: RECORDS}), replays.settings(), ManualClock(), bounds=lambda _: bounds)
    runner.run([JOB], lambda _: None)
    return made


def test_a_result_is_decoded_as_it_was_encoded() -> None:
    group = StoredGroup(3, 2, 5, 7, -4, 9, bytes(range(16)), 1, (LateSamples(-7, 3), LateSamples(5, 1)))
    counts = RecordCounts(1, 2, 3, 4, 5, 6, 7, 8, 9, (("EMPTY_NAME", 2), ("NOT_UTF8", 1)))
    result = JobResult((group, replace(group, least_time=None, greatest_time=None, late=())), counts, 77, 4, 3, 2)
    assert decode_result(encode_result(result), named="a job") == result


def test_counts_over_many_hours_are_decoded_and_others_are_readable_by_the_previous_version() -> None:
    late = (LateSamples(-4_096, 3, hours=2_048), LateSamples(5, 1))
    group = StoredGroup(3, 2, 5, 7, -4, 9, bytes(range(16)), 1, late)
    row = encode_result(JobResult((group,), RecordCounts(), 77))
    assert decode_result(row, named="a job").groups == (group,)
    (packed,) = unpack_sections(row.data, named="a job", count=1)
    assert json.loads(bytes(cramjam.zstd.decompress(packed)))["groups"][0]["late"] == [
        {"hour": -4_096, "samples": 3, "hours": 2_048},
        {"hour": 5, "samples": 1},
    ]


def test_the_row_that_marks_a_job_as_done_is_written_last(store: DictStore) -> None:
    assert store.kinds_in_order[-1] == RESULT
    assert {SUMMARY, KEYS, FAULTS, RESULT} == set(store.kinds_in_order)


def test_rows_have_their_lifetimes(store: DictStore) -> None:
    of_results = Lifetime.from_present(ManualClock().now_ms(), JOB.life + RESULT_MARGIN_MS)
    assert set(store.lives.values()) == {of_results, data_life(JOB, replays.settings())}


def test_another_lease_of_a_job_has_no_result(store: DictStore) -> None:
    assert read_result(store, JOB) is not None
    assert read_result(store, replace(JOB, epoch=2)) is None
    with pytest.raises(ResultDamaged, match=r"attempt 'plan\.2' is damaged: it does not exist"):
        read_summary(store, replace(JOB, epoch=2))


def test_only_the_rows_of_requested_keys_are_read(store: DictStore) -> None:
    summary, keys = read_summary(store, JOB)
    assert len(summary) == 3
    store.rows_read.clear()
    assert len(keys(np.array([2]))) == 1
    assert len(store.rows_read) == 1
    store.rows_read.clear()
    assert len(keys(np.array([], dtype=np.int64))) == 0
    assert store.rows_read == []


def test_faults_are_decoded_with_position_reason_and_content(store: DictStore) -> None:
    (fault,) = read_faults(store, JOB)
    assert (fault.offset, fault.time, fault.value) == (3, 1000 * HOUR, replays.POISON)
    assert fault.reason


@pytest.mark.parametrize("kind", [SUMMARY, KEYS, FAULTS, RESULT])
def test_changed_bytes_are_refused_with_the_name_of_their_job(store: DictStore, kind: str) -> None:
    of_result, of, seq = next(key for key in store.written_rows if key[1] == kind)
    data = bytearray(store.written_rows[of_result, of, seq])
    data[-1] ^= 1
    store.written_rows[of_result, of, seq] = bytes(data)
    with pytest.raises(ResultDamaged, match=r"shard metrics/0, bucket 1000, attempt 'plan\.1'"):
        read_all(store)


@pytest.mark.parametrize("kind", [SUMMARY, KEYS, FAULTS])
def test_a_missing_row_is_detected(store: DictStore, kind: str) -> None:
    del store.written_rows[next(key for key in store.written_rows if key[1] == kind)]
    with pytest.raises(ResultDamaged, match=r"instead of|is missing"):
        read_all(store)


def read_all(store: DictStore) -> None:
    read_result(store, JOB)
    summary, keys = read_summary(store, JOB)
    keys(np.arange(len(summary)))
    list(read_faults(store, JOB))


def test_a_row_of_another_version_is_refused() -> None:
    data = bytearray(pack_sections([b"x"]))
    body = bytes(data[8:9].replace(b"\x01", b"\x02")) + bytes(data[9:])
    forged = (digest(body) & 0xFFFF_FFFF_FFFF_FFFF).to_bytes(8, "little") + body
    with pytest.raises(ResultDamaged, match="version 2"):
        unpack_sections(forged, named="a job")


@pytest.mark.parametrize("length", range(30))
def test_truncated_bytes_are_refused(length: int) -> None:
    data = pack_sections([b"some", b"", b"bytes"])
    assert unpack_sections(data, named="a job") == [b"some", b"", b"bytes"]
    assert length < len(data)
    with pytest.raises(ResultDamaged):
        unpack_sections(data[:length], named="a job")


def keys_of(lengths: list[int], *, seed: int = 1) -> tuple[KeySummary, PartKeyBytes]:
    """Keys of bytes that can't be compressed."""
    rng = np.random.default_rng(seed)
    hashes = rng.integers(0, 2**64, (3, len(lengths)), dtype=np.uint64)
    numbers = rng.integers(-(2**63), 2**63, (4, len(lengths)))
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    return KeySummary(*hashes, *numbers), PartKeyBytes(offsets, rng.integers(0, 256, offsets[-1], dtype=np.uint8))


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_summaries_and_keys_are_decoded_as_they_were_encoded(count: int) -> None:
    summary, keys = keys_of(np.random.default_rng(2).integers(0, 50, count).tolist())
    back = decode_summary(encode_summary(summary), named="a job")
    assert all(np.array_equal(*pair) for pair in zip(back.columns(), summary.columns(), strict=True))
    assert replays.texts(decode_keys(encode_keys(keys), count, named="a job")) == replays.texts(keys)


def test_a_row_of_keys_that_would_be_too_large_is_split() -> None:
    summary, keys = keys_of([300_000] * 10)
    rows = list(key_rows(summary, keys))
    assert all(len(row.part_keys) <= MAX_ROW_BYTES for row in rows)
    assert sum(row.keys for row in rows) == 10
    back = KeySummary.concatenated([decode_summary(row.summary, named="a job") for row in rows])
    assert np.array_equal(back.key_low, summary.key_low)
    texts = [text for row in rows for text in replays.texts(decode_keys(row.part_keys, row.keys, named="a job"))]
    assert texts == replays.texts(keys)


def test_a_key_larger_than_a_row_is_stored() -> None:
    (row,) = key_rows(*keys_of([2_000_000]))
    assert row.keys == 1


def test_rows_end_with_a_number_of_keys_or_of_bytes() -> None:
    _, many = keys_of([1] * (KEYS_PER_ROW + 5))
    assert (row_end(many, 0), row_end(many, KEYS_PER_ROW)) == (KEYS_PER_ROW, KEYS_PER_ROW + 5)
    _, large = keys_of([3_000_000, 3_000_000, 9_000_000, 1])
    assert [row_end(large, first) for first in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("size", [1, 3, 16, 1000])
def test_faults_may_be_split_anywhere(size: int) -> None:
    faults = [FaultyRecord(offset, -offset, f"why {offset} ü", bytes(offset * 7)) for offset in range(9)]
    stream = encode_faults(faults)
    cuts = [*range(0, len(stream), size), len(stream)]
    assert list(decode_faults((stream[first:end] for first, end in pairwise(cuts)), named="a job")) == faults


def test_faults_that_end_too_soon_are_refused() -> None:
    stream = encode_faults([FaultyRecord(1, 2, "why", b"value")])
    with pytest.raises(ResultDamaged, match="cut off, 31 bytes into a record"):
        list(decode_faults([stream[:-1]], named="a job"))

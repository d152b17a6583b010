import gc
import weakref
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.spill import SpillFolder
from strandline.store.buffer.write_buffer import REFUSED, WriteBuffer
from support.buffer_model import PLENTY, FedBuffer, Record, budget, samples_of

pytestmark = pytest.mark.unit

A, B, C = (0, 1, 1), (1, 1, 1), (4, 0, 9)  # Of four groups: A and C in the first, B in the second.
ONE, TWO, THREE = (int(np.float64(value).view(np.uint64)) for value in (1.0, 2.0, 3.0))
STALE = 0x7FF0000000000002


def unlimited() -> MemoryBudget:
    """Nothing is ever spilled, so the folder is not needed."""
    return MemoryBudget(PLENTY, SpillFolder(Path("nowhere"), 0))


def flushed(fed: FedBuffer) -> dict:
    frozen = fed.buffer.freeze()
    found: dict = {}
    for group in frozen.groups_left:
        run = samples_of(frozen.run(group))
        assert all(key[0] % fed.groups == group for key in run)
        found |= run
        frozen.release(group)
    return found


WORDS = st.sampled_from([0, 1, 5, 2**64 - 1])
TIMES = st.one_of(st.integers(0, 12), st.sampled_from([-(2**63), 2**63 - 1]), st.integers(-(2**63), 2**63 - 1))
BITS = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([ONE, TWO, STALE, 1 << 63]))
ROWS = st.tuples(st.one_of(st.none(), st.tuples(WORDS, WORDS, WORDS)), st.lists(st.tuples(TIMES, BITS), max_size=6))
RECORDS = st.lists(st.lists(ROWS, max_size=8), max_size=8)


@given(RECORDS, st.integers(1, 20), st.integers(1, 5))
def test_a_flush_gives_every_sample_once_and_the_last_of_a_time(
    records: list[Record], seal_rows: int, groups: int
) -> None:
    fed = FedBuffer(unlimited(), groups=groups, seal_rows=seal_rows)
    for record in records:
        fed.feed(record)
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    assert flushed(fed) == fed.model
    status = fed.buffer.status()
    assert status.replaced == fed.fed - sum(map(len, fed.model.values()))


@pytest.mark.parametrize("seal_rows", [1, 2, 3, 100])
def test_the_later_of_two_samples_wins_in_a_record_and_between_records(seal_rows: int) -> None:
    fed = FedBuffer(unlimited(), seal_rows=seal_rows)
    fed.feed([(A, [(10, ONE), (10, TWO)]), (B, [(10, THREE)])])
    assert samples_of(fed.buffer.snapshot().read())[A] == {10: TWO}
    fed.feed([(B, [(10, ONE)]), (A, [(10, STALE)])])
    assert flushed(fed) == {A: {10: STALE}, B: {10: ONE}}
    assert fed.buffer.status().replaced == 3


def test_samples_out_of_order_sort_into_place() -> None:
    fed = FedBuffer(unlimited(), seal_rows=3)
    fed.feed([(A, [(30, THREE)]), (A, [(10, ONE), (20, TWO)]), (A, [(5, ONE)]), (A, [(25, TWO)])])
    assert samples_of(fed.buffer.snapshot().read()) == {A: {5: ONE, 10: ONE, 20: TWO, 25: TWO, 30: THREE}}


def test_refused_rows_leave_no_trace() -> None:
    fed = FedBuffer(unlimited(), seal_rows=2)
    fed.feed([(None, [(1, ONE)]), (A, [(2, TWO)]), (None, [(3, ONE), (4, ONE)]), (A, []), (A, [(5, THREE)])])
    assert flushed(fed) == {A: {2: TWO, 5: THREE}}


def test_a_record_larger_than_a_seal_is_added_completely() -> None:
    fed = FedBuffer(unlimited(), seal_rows=10)
    fed.feed([(A, [(time, ONE) for time in range(95)]), (B, [(1, TWO)])])
    status = fed.buffer.status()
    assert (status.samples, status.rows, status.series) == (96, 6, 2)
    assert flushed(fed) == fed.model


def test_a_series_that_was_not_defined_is_refused_and_nothing_of_its_record_stays() -> None:
    fed = FedBuffer(unlimited())
    fed.feed([(A, [(1, ONE)])])
    two_rows = np.array([0, 1], dtype=np.uint32)
    with pytest.raises(ValueError, match="row 1 has series 1, but only 1 are defined"):
        fed.buffer.append(two_rows, np.array([0, 1, 2]), np.array([7, 7]), np.array([1.0, 1.0]))
    assert samples_of(fed.buffer.snapshot().read()) == {A: {1: ONE}}


@pytest.mark.parametrize(
    ("first_sample", "times", "values"), [([0], 1, 1), ([0, 2], 1, 1), ([0, 1], 1, 2), ([0, 1, 1], 1, 1)]
)
def test_columns_that_do_not_fit_together_are_refused(first_sample: list[int], times: int, values: int) -> None:
    buffer = WriteBuffer(1, 4, unlimited(), seal_rows=4)
    row = np.array([REFUSED], dtype=np.uint32)
    with pytest.raises(ValueError, match="1 rows with"):
        buffer.append(row, np.array(first_sample), np.zeros(times, dtype=np.int64), np.zeros(values))
    some = np.zeros(2, dtype=np.uint64)
    with pytest.raises(ValueError, match="1 metrics, 2 and 2 halves"):
        buffer.define(some[:1], some, some)


def test_nothing_is_accepted_once_the_bucket_is_frozen() -> None:
    fed = FedBuffer(unlimited())
    fed.feed([(A, [(1, ONE)])])
    frozen = fed.buffer.freeze()
    with pytest.raises(ValueError, match="bucket 7 is frozen"):
        fed.feed([(A, [(2, ONE)])])
    with pytest.raises(ValueError, match="bucket 7 is frozen"):
        fed.feed([(B, [(2, ONE)])])
    with pytest.raises(ValueError, match="bucket 7 is frozen"):
        fed.buffer.freeze()
    assert samples_of(frozen.run(0)) == {A: {1: ONE}}
    assert fed.buffer.maintain() is False


def test_a_group_without_samples_has_an_empty_run_and_is_released_like_any_other() -> None:
    fed = FedBuffer(unlimited())
    fed.feed([(B, [(1, ONE)])])
    frozen = fed.buffer.freeze()
    assert frozen.bucket == 7
    assert frozen.groups_left == (0, 1, 2, 3)
    assert len(frozen.run(0)) == frozen.run(0).samples == 0
    frozen.release(0)
    assert frozen.groups_left == (1, 2, 3)
    with pytest.raises(ValueError, match="bucket 7 has no group 0, or it was released"):
        frozen.run(0)
    with pytest.raises(ValueError, match="bucket 7 has no group 0, or it was released"):
        frozen.release(0)
    with pytest.raises(ValueError, match="no group 4"):
        frozen.release(4)
    assert samples_of(frozen.run(1)) == samples_of(frozen.run(1)) == {B: {1: ONE}}


def test_a_bucket_without_any_record_freezes_to_empty_runs() -> None:
    frozen = WriteBuffer(3, 2, unlimited()).freeze()
    assert [len(frozen.run(group)) for group in frozen.groups_left] == [0, 0]
    assert samples_of(frozen.snapshot().read()) == {}


def test_merging_keeps_every_sample_and_makes_fewer_pages() -> None:
    fed = FedBuffer(unlimited(), seal_rows=4)
    for time in range(40):
        fed.feed([((metric, 0, 0), [(time // 2, time)]) for metric in range(4)])
    before = fed.buffer.status()
    steps = 0
    while fed.buffer.maintain():
        steps += 1
    after = fed.buffer.status()
    assert before.pages == 160
    assert after.pages == 4 * 5
    assert steps == 4 * 5
    assert after.memory_bytes < before.memory_bytes
    assert after.samples + after.replaced == before.samples == 160
    assert after.replaced == 80
    assert flushed(fed) == fed.model


def test_memory_is_counted_and_completely_released(tmp_path: Path) -> None:
    memory = budget(tmp_path)
    fed = FedBuffer(memory, seal_rows=16)
    for time in range(300):
        fed.feed([(A, [(time, time)]), (B, [(time, ONE)])])
        if time % 7 == 0:
            fed.buffer.maintain()
    assert memory.used == fed.buffer.status().memory_bytes > 16 * 20
    frozen = fed.buffer.freeze()
    assert memory.used == frozen.status().memory_bytes
    for group in frozen.groups_left:
        frozen.release(group)
        assert memory.used == frozen.status().memory_bytes
    assert memory.used == 0
    contents = weakref.ref(fed.buffer._contents)
    del fed, frozen
    gc.collect()
    assert contents() is None, "the budget still counts an empty buffer"


def test_a_seal_needs_room_for_a_row() -> None:
    with pytest.raises(ValueError, match="seal_rows is 0"):
        WriteBuffer(1, 4, unlimited(), seal_rows=0)


@pytest.mark.parametrize("counts", [[1, 1, 1, 1, 1], [1, 2, 0, 1, 1]])
def test_rows_may_begin_anywhere_in_their_columns(counts: list[int]) -> None:
    """As they do where a record is one of a batch: with one sample a row, and with any number."""
    fed = FedBuffer(unlimited(), seal_rows=2)
    fed.feed([((0, 0, number), []) for number in range(5)])
    first_sample = 3 + np.cumsum([0, *counts])
    times = np.arange(100, 110)
    fed.buffer.append(np.arange(5, dtype=np.uint32), first_sample, times, times.astype(np.float64))
    run = fed.buffer.snapshot().read()
    assert run.time.tolist() == run.value.tolist() == list(range(103, 108))
    assert run.key_low.tolist() == [number for number, count in enumerate(counts) if count]

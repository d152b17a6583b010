"""Sequences that are easy to get wrong in a buffer."""

import gc
from pathlib import Path

import numpy as np
import pytest

from strandline.store.buffer.write_buffer import SEAL_ROWS, WriteBuffer
from support.buffer_model import FedBuffer, budget, key_columns, samples_of

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("seal_rows", [1_000, 7_919, SEAL_ROWS])
@pytest.mark.parametrize("order", ["rising", "falling", "shuffled"])
def test_scenario_16_a_series_with_36_000_samples_has_all_of_them(tmp_path: Path, seal_rows: int, order: str) -> None:
    times = np.arange(36_000, dtype=np.int64) * 100
    arriving = {"rising": times, "falling": times[::-1], "shuffled": np.random.default_rng(1).permutation(times)}[order]
    buffer = WriteBuffer(1, 16, budget(tmp_path), seal_rows=seal_rows)
    keys = key_columns([(5, 1, 1), (5, 1, 2), (6, 0, 0)])
    buffer.define(keys.metric, keys.key_high, keys.key_low)
    for some in np.split(arriving, 18):
        # 2,000 samples of one series, and one sample of each of its neighbours.
        time = np.concatenate([some, some[:1], some[:1]])
        bounds = np.array([0, len(some), len(some) + 1, len(some) + 2])
        buffer.append(np.array([1, 0, 2], dtype=np.uint32), bounds, time, time / 7)
        buffer.maintain()
    frozen = buffer.freeze()
    run = frozen.run(5)
    assert run.key_low.tolist() == [1, 2]
    assert np.diff(run.first_sample).tolist() == [18, 36_000]
    assert np.array_equal(run.time[18:], times)
    assert np.array_equal(run.value[18:], times / 7)
    assert frozen.run(6).samples == 18


@pytest.mark.parametrize("seal_rows", [1, 2, 3, 4, 5, 100])
def test_scenario_16_the_later_of_two_samples_with_one_timestamp_in_a_record_always_wins(
    tmp_path: Path, seal_rows: int
) -> None:
    """With a seal at any place between them, before merges and after, in a query and in the flush."""
    fed = FedBuffer(budget(tmp_path), seal_rows=seal_rows)
    key, other = (0, 1, 1), (4, 1, 1)
    fed.feed([(key, [(10, 1), (10, 2)]), (other, [(10, 7)]), (key, [(10, 3)])])
    expected = {key: {10: 3}, other: {10: 7}}
    assert samples_of(fed.buffer.snapshot().read()) == expected
    for _ in range(20):
        fed.feed([(other, [(10, 7)])])
    while fed.buffer.maintain():
        assert samples_of(fed.buffer.snapshot().read()) == expected
    assert samples_of(fed.buffer.freeze().run(0)) == expected


def test_scenario_17_the_memory_limit_is_passed_in_the_middle_of_a_bucket(tmp_path: Path) -> None:
    """Appending continues without maintenance or flushes, the bucket is cut, the next one fills, nothing is lost."""
    seal_rows = 2_000
    memory = budget(tmp_path, memory=3 * seal_rows * 20)
    keys = [(number % 11, number, 1) for number in range(500)]
    first, second = (FedBuffer(memory, bucket=bucket, groups=4, seal_rows=seal_rows) for bucket in (1, 2))

    def fill(fed: FedBuffer) -> bool:
        """Returns whether the limit was exceeded by input and then respected."""
        rng = np.random.default_rng(fed.buffer.bucket)
        passed = False
        for time in range(60):
            noise = rng.integers(0, 2**62, len(keys)).tolist()
            fed.feed([(key, [(time, bits)]) for key, bits in zip(keys, noise, strict=True)])
            passed |= fed.buffer.status().spilled_bytes > 0
            assert memory.used <= memory.limit
        return passed

    assert fill(first)
    spilled = memory.spill.used
    frozen = first.buffer.freeze()
    assert fill(second), "the next bucket is filled while nothing of this one is flushed"
    assert memory.spill.used > spilled
    assert samples_of(first.buffer.snapshot().read()) == first.model
    for fed, cut in ((first, frozen), (second, second.buffer.freeze())):
        for group in cut.groups_left:
            assert samples_of(cut.run(group)) == fed.of_group(group)
            cut.release(group)
    gc.collect()  # The compilation of a kernel leaves frames behind, and they keep references to their values.
    assert memory.used == memory.spill.used == 0

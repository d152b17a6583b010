"""Writer, maintenance, flusher and readers at the same time. The threads meet at a barrier before and after each round;
within a round they run freely, and the assertions hold for any order of their steps. Each sample's value is its place
in the order of arrival: the greatest value in a snapshot gives the moment at which it was taken, and the snapshot must
have exactly the samples that had arrived by then.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread

import numpy as np
import pytest

from strandline.store.buffer.frozen_buffer import FrozenBuffer
from strandline.store.buffer.view import BufferView
from strandline.store.buffer.write_buffer import WriteBuffer
from support.buffer_model import Key, Model, budget, key_columns, samples_of

pytestmark = pytest.mark.simulation

ROUNDS, RECORDS_A_ROUND, SNAPSHOTS_A_ROUND = 12, 12, 5
GROUPS, SERIES, TIMES = 4, 60, 50
SERIES_KEYS: list[Key] = [(number % 7, number, 2**63 + number) for number in range(SERIES)]


@pytest.fixture(autouse=True)
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Arrivals:
    """All samples that will ever arrive, in order: sample n has the value n."""

    def __init__(self, seed: int, samples: int) -> None:
        rng = np.random.default_rng(seed)
        self.series = rng.integers(0, SERIES, samples, dtype=np.uint32)
        self.time = rng.integers(0, TIMES, samples)
        self.value = np.arange(samples, dtype=np.float64)

    def model(self, samples: int) -> Model:
        """The content of a buffer after this many samples."""
        model: Model = {}
        for number, time, bits in zip(
            self.series[:samples].tolist(),
            self.time[:samples].tolist(),
            self.value[:samples].view(np.uint64).tolist(),
            strict=True,
        ):
            model.setdefault(SERIES_KEYS[number], {})[time] = bits
        return model

    def append(self, buffer: WriteBuffer, first: int, behind: int) -> None:
        part = slice(first, behind)
        buffer.append(self.series[part], np.arange(behind - first + 1), self.time[part], self.value[part])


def arrived(model: Model) -> int:
    """The number of samples that had arrived in this state."""
    return (
        max((int(np.uint64(bits).view(np.float64)) for some in model.values() for bits in some.values()), default=-1)
        + 1
    )


def run_together(workers: dict[str, Callable[[int], None]]) -> None:
    """Each worker runs its round n at the same time as the others' round n. The first failure ends all of them."""
    barrier = Barrier(len(workers), timeout=120)
    failures: list[BaseException] = []

    def work(worker: Callable[[int], None]) -> None:
        try:
            for number in range(ROUNDS):
                barrier.wait()
                worker(number)
                barrier.wait()
        except BrokenBarrierError:
            return
        except BaseException as failure:  # noqa: BLE001 Raised again below, in the test's own thread.
            failures.append(failure)
            barrier.abort()

    threads = [Thread(target=work, args=(worker,), name=name) for name, worker in workers.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def new_buffer(bucket: int, folder: Path, memory: int) -> WriteBuffer:
    buffer = WriteBuffer(bucket, GROUPS, budget(folder, memory=memory), seal_rows=97)
    keys = key_columns(SERIES_KEYS)
    buffer.define(keys.metric, keys.key_high, keys.key_low)
    return buffer


@pytest.mark.parametrize("memory", [1 << 30, 8_000], ids=["in memory", "spilling"])
def test_a_snapshot_has_exactly_the_samples_that_had_arrived_when_it_was_taken(tmp_path: Path, memory: int) -> None:
    per_record = 31
    arrivals = Arrivals(1, ROUNDS * RECORDS_A_ROUND * per_record)
    buffer = new_buffer(1, tmp_path, memory)
    kept: list[tuple[BufferView, Model]] = []

    def write(number: int) -> None:
        for record in range(number * RECORDS_A_ROUND, (number + 1) * RECORDS_A_ROUND):
            arrivals.append(buffer, record * per_record, (record + 1) * per_record)

    def maintain(_: int) -> None:
        for _step in range(8):
            buffer.maintain()

    def read(number: int) -> None:
        least, newest = number * RECORDS_A_ROUND * per_record, (number + 1) * RECORDS_A_ROUND * per_record
        for _ in range(SNAPSHOTS_A_ROUND):
            view = buffer.snapshot()
            seen = samples_of(view.read())
            assert least <= arrived(seen) <= newest
            assert seen == arrivals.model(arrived(seen))
            least = arrived(seen)
        kept.append((view, seen))

    run_together({"writer": write, "maintenance": maintain, "reader 1": read, "reader 2": read})
    assert (buffer.status().spilled_bytes > 0) == (memory < 1 << 30)
    for view, seen in kept:
        assert samples_of(view.read()) == seen
    frozen = buffer.freeze()
    flushed = {key: some for group in range(GROUPS) for key, some in samples_of(frozen.run(group)).items()}
    assert flushed == arrivals.model(len(arrivals.series))


@pytest.mark.parametrize("memory", [1 << 30, 0], ids=["in memory", "spilled"])
def test_no_sample_is_missing_from_buffer_and_store_while_groups_are_flushed(tmp_path: Path, memory: int) -> None:
    arrivals = Arrivals(2, 3_000)
    whole = arrivals.model(3_000)
    rounds: list[tuple[FrozenBuffer, Model]] = []
    for bucket in range(ROUNDS):
        buffer = new_buffer(bucket, tmp_path / str(bucket), memory)
        arrivals.append(buffer, 0, 3_000)
        rounds.append((buffer.freeze(), {}))

    def flush(number: int) -> None:
        frozen, stored = rounds[number]
        for group in frozen.groups_left:
            stored.update(samples_of(frozen.run(group)))
            frozen.release(group)

    def read(number: int) -> None:
        frozen, stored = rounds[number]
        for _ in range(SNAPSHOTS_A_ROUND):
            # First the buffer, then the store: a flush in between gives the same sample twice, never none.
            view = frozen.snapshot()
            assert samples_of(view.read()) | stored == whole

    run_together({"flusher": flush, "reader 1": read, "reader 2": read})
    for frozen, stored in rounds:
        assert stored == whole
        assert frozen.groups_left == ()
        assert frozen.status().memory_bytes == frozen.status().spilled_bytes == 0

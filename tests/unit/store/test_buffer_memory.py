import gc
from pathlib import Path

import pytest

from strandline.store.buffer.memory import MemoryBudget
from strandline.store.buffer.spill import SpillDamaged, SpilledPage, SpillFull
from support.buffer_model import FedBuffer, budget, samples_of

pytestmark = pytest.mark.unit

KEYS = [(metric, 0, low) for metric in range(8) for low in range(8)]


def feed(fed: FedBuffer, records: int, first: int = 0) -> None:
    for time in range(first, first + records):
        fed.feed([(key, [(time, time * 977 + position)]) for position, key in enumerate(KEYS)])


def page_files(folder: Path) -> list[Path]:
    gc.collect()  # Compiling a kernel leaves frames behind, and the frames keep their objects alive.
    return sorted((folder / "spill").iterdir())


def within_limit(memory: MemoryBudget, *buffers: FedBuffer) -> None:
    """Counted as the buffers say, and not past the limit."""
    assert memory.used == sum(fed.buffer.status().memory_bytes for fed in buffers)
    assert memory.used <= memory.limit


def test_beyond_the_limit_pages_are_spilled_and_read_back(tmp_path: Path) -> None:
    memory = budget(tmp_path, memory=40_000)
    fed = FedBuffer(memory, seal_rows=256)
    for first in range(0, 200, 4):
        feed(fed, 4, first)
        within_limit(memory, fed)
    status = fed.buffer.status()
    assert status.spilled_bytes == memory.spill.used == sum(path.stat().st_size for path in page_files(tmp_path)) > 0
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    frozen = fed.buffer.freeze()
    for group in frozen.groups_left:
        assert samples_of(frozen.run(group)) == fed.of_group(group)
        frozen.release(group)
        assert not [path for path in page_files(tmp_path) if path.name.startswith(f"7-{group}-")]
    assert page_files(tmp_path) == []
    assert memory.used == memory.spill.used == 0


def test_the_oldest_pages_of_the_open_bucket_go_first_and_then_those_of_the_newest_frozen_one(tmp_path: Path) -> None:
    memory = budget(tmp_path)
    buffers = [FedBuffer(memory, bucket=bucket, groups=1, seal_rows=64) for bucket in (3, 4, 5)]
    for fed in buffers:
        feed(fed, 3)
    for fed in buffers[:2]:
        fed.buffer.freeze()
    page = memory.used
    moved = []
    for _ in range(9):
        memory.limit = memory.used - 1
        memory.spill_excess()
        assert memory.used < page
        page = memory.used
        (new,) = set(page_files(tmp_path)) - {path for _, path in moved}
        moved.append((int(new.name.split("-")[0]), new))
    assert [bucket for bucket, _ in moved] == [5] * 3 + [4] * 3 + [3] * 3
    memory.limit = 0
    memory.spill_excess()  # Nothing is left to move, and no writer waits for it.
    assert len(page_files(tmp_path)) == 9
    places = [page.stored._at for page in buffers[2].buffer._contents.pages_of(0)[1]]
    oldest_first = [place.path for place in places if isinstance(place, SpilledPage)]
    assert oldest_first == [path for bucket, path in moved if bucket == 5]


def test_the_pages_of_the_oldest_seal_go_first_whatever_their_group(tmp_path: Path) -> None:
    memory = budget(tmp_path)
    fed = FedBuffer(memory, groups=2, seal_rows=64)
    feed(fed, 4)
    groups: list[int] = []
    before: set[Path] = set()
    for _ in range(8):
        memory.limit = memory.used - 1
        memory.spill_excess()
        (new,) = set(page_files(tmp_path)) - before
        before.add(new)
        groups.append(int(new.name.split("-")[1]))
    assert groups == [0, 1] * 4


def test_a_full_spill_is_raised_and_nothing_is_lost_by_it(tmp_path: Path) -> None:
    memory = budget(tmp_path, memory=0, spill=3_000)
    fed = FedBuffer(memory, seal_rows=256)
    with pytest.raises(SpillFull, match="of 3000 bytes"):
        feed(fed, 1_000)
    assert 0 < memory.spill.used <= 3_000
    assert samples_of(fed.buffer.snapshot().read()) == fed.model


def test_a_damaged_page_stops_the_flush_of_its_group_and_names_the_file(tmp_path: Path) -> None:
    fed = FedBuffer(budget(tmp_path, memory=0), seal_rows=256)
    feed(fed, 20)
    damaged = next(path for path in page_files(tmp_path) if path.name.startswith("7-2-"))
    damaged.write_bytes(damaged.read_bytes()[::-1])
    frozen = fed.buffer.freeze()
    with pytest.raises(SpillDamaged, match=damaged.name):
        frozen.run(2)
    with pytest.raises(SpillDamaged, match=damaged.name):
        frozen.snapshot().read()
    assert samples_of(frozen.run(1)) == fed.of_group(1)


def test_frozen_pages_on_disk_and_in_memory_make_one_run(tmp_path: Path) -> None:
    memory = budget(tmp_path)
    fed = FedBuffer(memory, seal_rows=100)
    feed(fed, 30)
    memory.limit = memory.used
    memory.spill_excess()
    assert fed.buffer.status().spilled_bytes == 0, "memory may be used up to the limit"
    memory.limit -= 2_000
    memory.spill_excess()
    status = fed.buffer.status()
    assert status.spilled_bytes > 0
    assert status.memory_bytes > 100 * 20
    feed(fed, 5, 20)
    frozen = fed.buffer.freeze()
    assert [samples_of(frozen.run(group)) for group in range(4)] == [fed.of_group(group) for group in range(4)]

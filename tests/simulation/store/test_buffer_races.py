"""Steps of one thread during another thread's step, at the critical moments. The other thread's step runs inside a
function that the buffer calls without its lock. If the lock were held, the step would deadlock.
"""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from strandline.store.buffer import write_buffer
from strandline.store.buffer.spill import SpillFolder
from strandline.store.buffer.view import BufferView
from support.buffer_model import FedBuffer, Model, budget, samples_of

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(60)]

KEYS = [(number % 2, number, 0) for number in range(16)]


@pytest.fixture
def fed(tmp_path: Path) -> FedBuffer:
    """Eight pages in each of two groups: enough for a merge."""
    fed = FedBuffer(budget(tmp_path), groups=2, seal_rows=len(KEYS))
    fill(fed, range(8))
    assert fed.buffer.status().pages == 16
    return fed


def fill(fed: FedBuffer, times: range) -> None:
    for time in times:
        fed.feed([(key, [(time, 1000 * time + place)]) for place, key in enumerate(KEYS)])


def during(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, step: Callable[[], object]) -> None:
    """Run the step once, during the next call of a function: after its work, before its result is used."""
    original = getattr(owner, name)

    def with_step(*arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        monkeypatch.setattr(owner, name, original)
        step()
        return result

    monkeypatch.setattr(owner, name, with_step)


def check_counts(fed: FedBuffer) -> None:
    gc.collect()  # The compilation of a kernel leaves frames behind, and they keep references to their values.
    memory, status = fed.buffer._contents._memory, fed.buffer.status()
    assert memory.used == status.memory_bytes
    assert memory.spill.used == status.spilled_bytes
    assert sum(path.stat().st_size for path in memory.spill.path.iterdir()) == status.spilled_bytes


def spill_everything(fed: FedBuffer) -> None:
    memory = fed.buffer._contents._memory
    before, memory.limit = memory.limit, 0
    memory.spill_excess()
    memory.limit = before


def test_rows_come_and_are_sealed_during_a_merge(fed: FedBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    during(monkeypatch, write_buffer, "merge", lambda: fill(fed, range(4, 12)))
    assert fed.buffer.maintain()
    assert [len(fed.buffer._contents.pages_of(group)[1]) for group in range(2)] == [1 + 8, 8 + 8]
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    check_counts(fed)


def test_pages_that_are_spilled_during_their_merge_leave_the_disk_again(
    fed: FedBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    during(monkeypatch, write_buffer, "merge", lambda: spill_everything(fed))
    assert fed.buffer.maintain()
    status = fed.buffer.status()
    assert (status.pages, status.samples) == (1 + 8, 8 * len(KEYS))
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    check_counts(fed)


def test_a_merge_that_ends_after_its_group_was_flushed_changes_nothing(
    fed: FedBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flush() -> None:
        frozen = fed.buffer.freeze()
        assert samples_of(frozen.run(0)) == fed.of_group(0)
        frozen.release(0)

    during(monkeypatch, write_buffer, "merge", flush)
    assert fed.buffer.maintain()
    assert samples_of(fed.buffer.snapshot().read()) == fed.of_group(1)
    check_counts(fed)


def test_a_whole_bucket_is_flushed_between_the_choice_of_a_merge_and_the_merge(
    fed: FedBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flush() -> None:
        frozen = fed.buffer.freeze()
        for group in frozen.groups_left:
            frozen.release(group)

    during(monkeypatch, write_buffer, "next_merge", flush)
    assert fed.buffer.maintain()
    assert samples_of(fed.buffer.snapshot().read()) == {}
    check_counts(fed)


def test_a_frozen_bucket_is_no_longer_merged(fed: FedBuffer) -> None:
    fed.buffer.freeze()
    assert not fed.buffer.maintain()
    assert fed.buffer.status().pages == 16


def test_a_merge_that_ends_after_the_cut_is_used(fed: FedBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    during(monkeypatch, write_buffer, "merge", fed.buffer.freeze)
    assert fed.buffer.maintain()
    assert fed.buffer.status().pages == 1 + 8
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    check_counts(fed)


def test_two_merges_of_the_same_pages_give_one_page(fed: FedBuffer, monkeypatch: pytest.MonkeyPatch) -> None:
    during(monkeypatch, write_buffer, "merge", fed.buffer.maintain)
    assert fed.buffer.maintain()
    assert fed.buffer.status().pages == 1 + 8
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    check_counts(fed)


def test_a_page_that_is_flushed_during_its_spill_is_counted_once(
    fed: FedBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = fed.buffer.freeze()
    during(monkeypatch, SpillFolder, "write", lambda: frozen.release(0))
    spill_everything(fed)
    assert samples_of(frozen.run(1)) == fed.of_group(1)
    check_counts(fed)
    frozen.release(1)
    check_counts(fed)


def test_a_page_that_is_merged_during_its_spill_is_counted_once(
    fed: FedBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    during(monkeypatch, SpillFolder, "write", fed.buffer.maintain)
    spill_everything(fed)
    assert fed.buffer.status().pages == 1 + 8
    assert samples_of(fed.buffer.snapshot().read()) == fed.model
    check_counts(fed)


def test_a_snapshot_during_a_seal_shows_the_rows_once_and_keeps_them(
    fed: FedBuffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[BufferView, Model]] = []

    def look() -> None:
        seen.append((fed.buffer.snapshot(), fed.copied()))

    during(monkeypatch, write_buffer, "seal", look)
    fill(fed, range(6, 9))
    ((view, model),) = seen
    # One record per seal: the model is what had arrived by then.
    assert samples_of(view.read()) == model
    assert samples_of(fed.buffer.snapshot().read()) == fed.model


def test_a_spilled_page_is_still_readable_by_an_earlier_view(fed: FedBuffer) -> None:
    view = fed.buffer.snapshot()
    spill_everything(fed)
    assert samples_of(view.read()) == fed.model
    check_counts(fed)

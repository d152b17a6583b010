import gc
from pathlib import Path

import pytest

from strandline.store.buffer.value_search import MAX_SCANNED_VALUES
from strandline.time_range import ALL_TIMES, LATEST, TimeRange
from support.buffer_model import FedBuffer, budget, key_columns, samples_of, within

pytestmark = pytest.mark.unit

KEYS = [(metric, 0, low) for metric in range(5) for low in range(3)]


def filled(folder: Path, *, memory: int = 1 << 40, records: int = 20) -> FedBuffer:
    fed = FedBuffer(budget(folder, memory=memory), seal_rows=50)
    for time in range(records):
        fed.feed([(key, [(10 * time, time + position)]) for position, key in enumerate(KEYS)])
    return fed


def test_later_changes_are_not_visible_in_a_snapshot(tmp_path: Path) -> None:
    fed = filled(tmp_path)
    seen = [(fed.buffer.snapshot(), fed.copied())]
    fed.feed([(KEYS[0], [(0, 99)]), ((77, 7, 7), [(5, 5)])])  # Replaces a sample, and adds a series.
    seen.append((fed.buffer.snapshot(), fed.copied()))
    for time in range(200, 230):
        fed.feed([(key, [(time, 1)]) for key in KEYS])
    while fed.buffer.maintain():
        seen.append((fed.buffer.snapshot(), fed.copied()))
    frozen = fed.buffer.freeze()
    seen.append((frozen.snapshot(), fed.copied()))
    for group in frozen.groups_left:
        frozen.release(group)
    assert len(seen) > 3
    for view, model in seen:
        assert samples_of(view.read()) == model


def test_a_released_group_is_visible_in_older_views_only(tmp_path: Path) -> None:
    fed = filled(tmp_path)
    frozen = fed.buffer.freeze()
    before = frozen.snapshot()
    frozen.release(1)
    left = {key: samples for key, samples in fed.model.items() if key[0] % 4 != 1}
    assert samples_of(frozen.snapshot().read()) == left
    assert samples_of(before.read()) == fed.model


@pytest.mark.parametrize("freeze", [False, True])
def test_a_query_returns_the_requested_series_and_times(tmp_path: Path, freeze: bool) -> None:
    fed = filled(tmp_path)
    view = fed.buffer.freeze().snapshot() if freeze else fed.buffer.snapshot()
    wanted = [KEYS[3], (99, 0, 0), KEYS[10], KEYS[3], KEYS[0]]
    found = view.read(key_columns(wanted), TimeRange(35, 120))
    model = {key: samples for key, samples in fed.model.items() if key in wanted}
    assert samples_of(found) == within(model, 35, 120)
    assert samples_of(view.read(None, TimeRange(40, 40))) == within(fed.model, 40, 40)
    assert len(view.read(None, TimeRange(1_000, 2_000))) == 0
    assert len(view.read(None, TimeRange(120, 35))) == 0
    assert len(view.read(key_columns([]))) == 0
    assert len(view.read(key_columns([(99, 0, 0)]))) == 0


def test_a_view_still_reads_pages_on_disk_that_the_flush_has_released(tmp_path: Path) -> None:
    fed = filled(tmp_path, memory=0)
    folder = tmp_path / "spill"
    assert fed.buffer.status().spilled_bytes > 0
    view = fed.buffer.snapshot()
    frozen = fed.buffer.freeze()
    for group in frozen.groups_left:
        frozen.release(group)
    assert samples_of(view.read()) == fed.model
    assert list(folder.iterdir())
    del view
    gc.collect()
    assert not list(folder.iterdir())


def test_rows_without_a_snapshot_are_reused_in_place(tmp_path: Path) -> None:
    fed = FedBuffer(budget(tmp_path), seal_rows=2)
    rows = fed.buffer._contents.rows
    fed.feed([(KEYS[0], [(1, 1), (2, 2), (3, 3)])])
    assert fed.buffer._contents.rows is rows
    view = fed.buffer.snapshot()
    fed.feed([(KEYS[0], [(4, 4), (5, 5)])])
    assert fed.buffer._contents.rows is not rows
    assert samples_of(view.read()) == {KEYS[0]: {1: 1, 2: 2, 3: 3}}


def test_few_series_are_found_like_many(tmp_path: Path) -> None:
    fed = filled(tmp_path)
    view = fed.buffer.snapshot()
    # Halves of existing keys, and one that exists in another group.
    unknown = [(metric, 1, low) for metric in range(5) for low in range(3)] + [(5, 0, 0), (0, 0, 9)]
    for wanted in (
        [KEYS[4]],
        KEYS[:MAX_SCANNED_VALUES],
        [*unknown[:4], KEYS[7]],
        unknown[:MAX_SCANNED_VALUES],
        unknown,
        KEYS + unknown,
    ):
        expected = {key: samples for key, samples in fed.model.items() if key in wanted}
        assert samples_of(view.read(key_columns(wanted))) == expected


def test_a_view_returns_the_minimum_time_since_an_earlier_one(tmp_path: Path) -> None:
    fed = FedBuffer(budget(tmp_path), seal_rows=4)
    versions = [fed.buffer.snapshot().version]
    times = [70, 50, 60, 90, 40, 80, 80, 30, 95, 96, 97]
    for time in times:
        fed.feed([(KEYS[0], [(time, 1)])])
        versions.append(fed.buffer.snapshot().version)
    assert fed.buffer.status().pages > 1
    for view in (fed.buffer.snapshot(), fed.buffer.freeze().snapshot()):
        assert view.least_time_since(None) == 30
        for position, version in enumerate(versions[:-1]):
            # Rows that were sealed together count as one.
            sealed_with = position - position % 4
            assert min(times[sealed_with:]) <= view.least_time_since(version) <= min(times[position:])
    other = FedBuffer(budget(tmp_path / "other"), seal_rows=4)
    assert other.buffer.snapshot().least_time_since(None) == LATEST
    assert view.least_time_since(other.buffer.snapshot().version) == 30
    assert view.least_time_since(view.version) == LATEST


def test_a_view_estimates_the_samples_per_series_of_each_group(tmp_path: Path) -> None:
    fed = filled(tmp_path)
    frozen = fed.buffer.freeze()
    assert frozen.snapshot().samples_per_series(ALL_TIMES).tolist() == [20.0] * 4
    half = frozen.snapshot().samples_per_series(TimeRange(0, 95))
    assert ((half > 8) & (half < 12)).all()
    frozen.release(1)
    assert frozen.snapshot().samples_per_series(ALL_TIMES).tolist() == [20.0, 0.0, 20.0, 20.0]

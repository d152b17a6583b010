"""The steps of a rewind in a store: taking the shard, marking rows batch by batch, and giving up ownership."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.recovery.checkpoints import progress
from strandline.recovery.present import Present
from strandline.recovery.rewinding import (
    RewindPlan,
    RewindRefused,
    ToBucket,
    rewind,
)
from strandline.store.protocol import Fenced, StoreUnavailable
from strandline.store.rows import ManifestRows, ManifestWrite, Ownership
from strandline.store.sqlite import SqliteStore, open_sqlite_store
from support.manifest_rows import SHARD, row
from support.rewind_plans import GROUPS, HOUR, planned, stored
from support.shard_world import FaultyStore, StoreCall, no_fault

pytestmark = pytest.mark.unit

NOW = 1_700_000_000_000


class Shard:
    """A shard in a store, with a manifest and without an owner."""

    def __init__(self, store: SqliteStore, clock: ManualClock, rows: ManifestRows) -> None:
        self.sqlite, self.store, self.clock = store, FaultyStore(store), clock
        self.owner = self.take()
        store.commit(self.owner, ManifestWrite(rows.cuts, rows.groups, next_part_id=77, present=clock.now_ms()))
        store.touch(self.owner, None, 0)

    def take(self) -> Ownership:
        before = self.sqlite.state(SHARD)
        name = f"owner-{before.epoch if before else 0}"
        taken = self.sqlite.take(SHARD, name, before, now=self.clock.now_ms(), topic_id="topic-1")
        assert taken is not None
        return taken

    def rewind(self, bucket: int = 18, *, most_rows: int = 1_000) -> RewindPlan:
        return rewind(
            self.store,
            self.take,
            lambda rows: planned(rows, ToBucket(bucket), most_rows=most_rows),
            self.clock,
            Present(self.clock, lambda: None),
        )

    def manifest(self) -> ManifestRows:
        found = self.sqlite.manifest(SHARD)
        assert found is not None
        return found

    def superseded(self) -> set[int]:
        return {row.bucket for row in self.manifest().groups if row.superseded}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Shard]]:
    clock = ManualClock(NOW)
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as store:
        yield lambda rows=None: Shard(store, clock, rows or stored())


def test_marking_changes_nothing_else_of_a_row_nor_the_next_part_id(make: Callable[..., Shard]) -> None:
    rows = stored()
    with_index = tuple(row(rewound.bucket, rewound.group, index=rewound.group == 1) for rewound in rows.groups)
    shard = make(replace(rows, groups=with_index))
    before = shard.manifest()
    plan = shard.rewind()
    after = shard.manifest()
    assert after.cuts == before.cuts
    assert after.groups == tuple(replace(row, superseded=row.bucket >= 18) for row in before.groups)
    assert (after.state.next_part_id, after.state.topic_id) == (77, "topic-1")
    assert after.state.epoch == before.state.epoch + 1
    assert plan.rows == 9
    done = progress(after, GROUPS, SHARD)
    assert done is not None
    assert set(done.checkpoints) == {plan.offset}


def test_a_rewind_gives_up_ownership(make: Callable[..., Shard]) -> None:
    shard = make()
    shard.rewind()
    assert shard.manifest().state.seen_at is None


def test_a_refused_rewind_gives_up_ownership_and_marks_nothing(make: Callable[..., Shard]) -> None:
    shard = make()
    with pytest.raises(RewindRefused):
        shard.rewind(21)
    assert shard.manifest().state.seen_at is None
    assert shard.superseded() == set()


def commits(number: int, error: BaseException) -> Callable[[StoreCall], None]:
    """Let the first commits pass, and raise at the next."""
    left = number

    def hook(call: StoreCall) -> None:
        nonlocal left
        left -= call.name == "commit"
        if left < 0:
            raise error

    return hook


def test_a_store_that_fails_in_the_middle_leaves_a_shorter_rewind_that_can_be_continued(
    make: Callable[..., Shard],
) -> None:
    shard = make()
    shard.store.before = commits(2, StoreUnavailable("gone"))
    with pytest.raises(StoreUnavailable):
        shard.rewind(17, most_rows=3)
    assert shard.superseded() == {19, 20}
    shard.store.before = no_fault
    assert shard.rewind(17, most_rows=3).rows == 6
    assert shard.superseded() == {17, 18, 19, 20}


def test_a_rewind_that_loses_ownership_stops_and_does_not_end_the_new_owner_s(
    make: Callable[..., Shard],
) -> None:
    shard = make()

    def overtake(call: StoreCall) -> None:
        if call.name == "commit" and shard.superseded():
            shard.store.after = no_fault
            shard.take()

    shard.store.after = overtake
    with pytest.raises(Fenced):
        shard.rewind(17, most_rows=3)
    assert shard.superseded() == {20}
    assert shard.manifest().state.seen_at == NOW


def test_a_long_rewind_writes_heartbeats(make: Callable[..., Shard]) -> None:
    shard = make()
    seen: list[int | None] = []

    def take_long(call: StoreCall) -> None:
        if call.name == "commit":
            shard.clock.sleep(11)
        if call.name == "touch":
            seen.append(call.arguments[1])

    shard.store.after = take_long
    shard.rewind(18, most_rows=3)
    assert seen == [NOW + 11_000, NOW + 22_000, NOW + 33_000, None]


def test_a_rewind_is_kept_if_giving_up_ownership_fails(make: Callable[..., Shard]) -> None:
    shard = make()

    def fail(call: StoreCall) -> None:
        if call.name == "touch":
            raise StoreUnavailable("gone")

    shard.store.before = fail
    with capture_logs() as lines:
        assert shard.rewind().rows == 9
    assert [line["event"] for line in lines] == ["could not give up ownership after a rewind"]
    assert shard.superseded() == {18, 19, 20}


def test_the_plan_is_made_after_taking_the_shard(make: Callable[..., Shard]) -> None:
    """Before that its owner may still commit."""
    shard = make()
    calls: list[str] = []

    def take() -> Ownership:
        calls.append("take")
        return shard.take()

    def plan_of(rows: ManifestRows) -> RewindPlan:
        calls.append("plan")
        assert rows.state.epoch == shard.owner.epoch + 1
        return planned(rows, ToBucket(20))

    rewind(shard.store, take, plan_of, shard.clock, Present(shard.clock, lambda: None))
    assert calls == ["take", "plan"]


def test_a_machine_whose_clock_is_months_ahead_does_not_end_the_rows_that_it_marks(make: Callable[..., Shard]) -> None:
    """Marked rows are written again, with the rest of their lifetime by the present."""
    shard = make()
    written: list[int] = []

    def note(call: StoreCall) -> None:
        if call.name == "commit":
            write = call.arguments[1]
            assert isinstance(write, ManifestWrite)
            written.append(write.present)

    shard.store.before = note
    ahead = ManualClock(NOW + 200 * 24 * HOUR)
    rewind(shard.store, shard.take, lambda rows: planned(rows, ToBucket(18)), ahead, Present(ahead, lambda: NOW))
    assert written == [NOW]

"""A single wrong clock never ends keys, closes buckets early, loses data or prevents a start. Each machine has its own
clock. Scenarios 36 to 40.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.node.shard.options import ReplayMode
from strandline.recovery.cutting import NO_TIME
from strandline.recovery.periods import Period
from strandline.recovery.readiness import StoredDataset, Verdict, newest_ready_hour, readiness
from support.clock_worlds import ClocksWorld
from support.rewound_worlds import cutting_of
from support.shard_world import HOUR, MINUTE, START

pytestmark = pytest.mark.simulation

DAY = 24 * HOUR
FIRST = START // HOUR
MakeWorld = Callable[..., ClocksWorld]


@pytest.fixture
def make(folder: Path) -> Iterator[MakeWorld]:
    with ExitStack() as opened:

        def made(name: str = "world", **changes: object) -> ClocksWorld:
            (folder / name).mkdir()
            return opened.enter_context(closing(ClocksWorld(folder / name, **changes)))

        yield made


@pytest.fixture
def world(make: MakeWorld) -> ClocksWorld:
    return make()


def cuts_of(world: ClocksWorld) -> list[tuple[int, int, int]]:
    return sorted((cut.bucket, cut.start, cut.end) for cut in world.manifest().cuts)


def newest_ready(world: ClocksWorld) -> int | None:
    """The newest ready hour according to a correct clock."""
    stored = StoredDataset("metrics", cutting_of(world), world.options.groups, [world.manifest()], 0, world.true_ms)
    return newest_ready_hour(stored)


def check_sound(world: ClocksWorld) -> None:
    """Assert that everything produced is found once, all keys are live, and no future bucket is closed."""
    world.check_all_found()
    assert all(end is None for _, _, end in world.keys().values()), "a key with new samples has ended"
    assert max(cut.bucket for cut in world.manifest().cuts) <= world.true_ms // HOUR - 1


def restarted(world: ClocksWorld, mode: ReplayMode = ReplayMode.DIRECT) -> None:
    world.crash()
    world.replay_by(mode)
    world.start()
    for _ in range(4):
        world.work()
        world.pass_time(1_000)
        world.settle()


# Scenario 36: one record of a broker whose clock is ahead.


def test_a_record_eight_hours_ahead_closes_nothing_early(world: ClocksWorld) -> None:
    world.start()
    world.live_through(60)
    before = cuts_of(world)
    world.brokers_ahead = 8 * HOUR
    world.scrape()
    world.settle()
    world.brokers_ahead = 0
    assert cuts_of(world) == before
    world.live_through(180)
    check_sound(world)
    assert [bucket for bucket, _, _ in cuts_of(world)] == list(range(FIRST - 1, world.true_ms // HOUR))
    assert newest_ready(world) == world.true_ms // HOUR - 1


@pytest.mark.parametrize("mode", [ReplayMode.DIRECT, ReplayMode.SPARK])
def test_a_record_eight_hours_ahead_closes_nothing_early_in_a_replay(world: ClocksWorld, mode: ReplayMode) -> None:
    """The present has passed its time by then, and the other records decide where the buckets end."""
    world.start()
    world.live_through(60)
    world.crash()
    for minutes in range(0, 600, 10):
        world.pass_time(10 * MINUTE)
        world.brokers_ahead = 8 * HOUR if minutes == 30 else 0
        world.scrape()
    world.brokers_ahead = 0
    world.replay_by(mode)
    world.start()
    for _ in range(12):
        world.work()
        world.pass_time(1_000)
        world.settle()
    assert world.is_active()
    check_sound(world)
    records = [end - start for bucket, start, end in cuts_of(world) if bucket > FIRST + 1]
    assert len(records) >= 8
    assert all(count == 6 for count in records), f"records a bucket: {records}"


def test_a_shard_that_is_behind_is_not_misled_by_a_record_ahead(world: ClocksWorld) -> None:
    """After an outage of the brokers, it reads hours of records, one of them from the future."""
    world.start()
    world.live_through(60)
    world.log.reachable = False
    for minutes in range(0, 360, 10):
        world.pass_time(10 * MINUTE)
        world.brokers_ahead = 4 * HOUR if minutes == 30 else 0
        world.scrape()
        world.running.step()
    world.brokers_ahead = 0
    world.log.reachable = True
    world.settle()
    world.live_through(30)
    check_sound(world)
    records = [end - start for bucket, start, end in cuts_of(world) if FIRST + 1 < bucket < world.true_ms // HOUR - 1]
    assert all(count == 6 for count in records), f"records a bucket: {records}"


def test_records_of_a_broker_that_stays_ahead_close_buckets_when_the_present_reaches_their_deadline(
    world: ClocksWorld,
) -> None:
    world.brokers_ahead = 5 * HOUR
    world.start()
    world.live_through(300)
    check_sound(world)
    world.brokers_ahead = 0
    world.live_through(120)
    check_sound(world)
    assert [bucket for bucket, _, _ in cuts_of(world)] == list(range(FIRST - 1, world.true_ms // HOUR))
    restarted(world)
    check_sound(world)


def test_a_first_start_at_a_record_from_the_future_begins_at_the_present(world: ClocksWorld) -> None:
    world.brokers_ahead = 30 * DAY
    world.scrape()
    world.brokers_ahead = 0
    world.start()
    world.live_through(120)
    check_sound(world)
    assert cuts_of(world)[0][0] == FIRST - 1


@pytest.mark.parametrize("wrong_clock", ["node", "store"])
def test_a_first_start_with_a_clock_far_behind_begins_at_the_record_s_time(
    world: ClocksWorld, wrong_clock: str
) -> None:
    world.scrape()
    (world.set_node_ahead if wrong_clock == "node" else world.set_store_ahead)(-200 * DAY)
    world.start()
    assert cuts_of(world)[0][0] == FIRST - 1
    world.set_node_ahead(0)
    world.set_store_ahead(0)
    world.live_through(120)
    check_sound(world)


# Scenario 37: a start with a wrong clock.


@pytest.mark.parametrize("ahead", [3 * HOUR, 5 * DAY, 200 * DAY], ids=["hours", "days", "months"])
@pytest.mark.parametrize("idle", [False, True], ids=["busy", "idle"])
def test_a_start_with_the_node_s_clock_ahead_changes_nothing(world: ClocksWorld, ahead: int, idle: bool) -> None:
    world.start()
    world.live_through(180)
    before, keys = cuts_of(world), world.keys()
    world.set_node_ahead(ahead)
    restarted(world)
    assert cuts_of(world) == before
    assert world.keys() == keys, "the stored samples of a key count"
    if not idle:
        world.live_through(60)
    assert set(world.keys()) == set(keys)
    world.crash()
    world.set_node_ahead(0)
    world.start()
    world.live_through(60)
    check_sound(world)
    assert [bucket for bucket, _, _ in cuts_of(world)] == list(range(FIRST - 1, world.true_ms // HOUR))


@pytest.mark.parametrize("ahead", [3 * HOUR, 200 * DAY], ids=["hours", "months"])
def test_a_start_while_the_store_s_clock_is_ahead_changes_nothing(world: ClocksWorld, ahead: int) -> None:
    """Expiry by the server's own clock is not tested here: nothing expires meanwhile."""
    world.start()
    world.live_through(180)
    before, keys = cuts_of(world), world.keys()
    world.set_store_ahead(ahead)
    restarted(world)
    assert cuts_of(world) == before
    assert world.keys() == keys
    world.set_store_ahead(0)
    restarted(world)
    world.live_through(60)
    check_sound(world)


# Scenario 38: clocks that are behind while buckets are stored.


def test_data_stored_while_the_node_s_clock_is_behind_has_the_right_lifetime(make: MakeWorld) -> None:
    wrong, right = make("wrong"), make("right")
    for world in (wrong, right):
        world.start()
        world.live_through(60)
    wrong.set_node_ahead(-7 * DAY)
    for world in (wrong, right):
        world.live_through(120)
    wrong.crash()
    wrong.start()
    for world in (wrong, right):
        world.live_through(60)
    lives = [
        {(row.bucket, row.group): (row.expires, row.data_expires) for row in world.manifest().groups}
        for world in (wrong, right)
    ]
    assert lives[0].keys() == lives[1].keys()
    for place, (expires, data_expires) in lives[1].items():
        assert abs(lives[0][place][0] - expires) <= HOUR, place
        assert abs(lives[0][place][1] - data_expires) <= HOUR, place


@pytest.mark.parametrize("ahead", [-7 * DAY, 7 * DAY], ids=["behind", "ahead"])
def test_segments_of_a_worker_with_a_wrong_clock_expire_by_the_owner_s_present(world: ClocksWorld, ahead: int) -> None:
    """Segments that were written hours before their rows: an expiry computed at the commit of the rows would exceed
    their lifetime.
    """
    world.start()
    world.live_through(60)
    world.crash()
    for _ in range(6):
        world.pass_time(HOUR)
        world.scrape()
    world.replay_by(ReplayMode.SPARK)
    world.start()
    planned, missing = world.true_ms, range(FIRST + 1, world.true_ms // HOUR)
    world.set_node_ahead(ahead)
    world.work()
    world.set_node_ahead(0)
    world.pass_time(3 * HOUR)
    world.settle()
    dates = {row.data_expires for bucket in missing for row in world.rows(bucket).values()}
    assert dates == {planned + world.options.policy.time_to_live}


# Scenario 39: one wrong reading.


@pytest.mark.parametrize("ahead", [8 * HOUR, 300 * DAY, -300 * DAY])
@pytest.mark.parametrize("wrong_clock", ["node", "store"])
def test_one_wrong_reading_while_running_changes_nothing(world: ClocksWorld, ahead: int, wrong_clock: str) -> None:
    world.start()
    world.live_through(300)
    rows = len(world.manifest().groups)
    for _ in range(4):
        (world.set_node_ahead if wrong_clock == "node" else world.set_store_ahead)(ahead)
        world.running.step()
        world.running.flusher.step()
        world.set_node_ahead(0)
        world.set_store_ahead(0)
        world.pass_time(MINUTE)
        world.settle()
    assert len(world.manifest().groups) >= rows, "a row is gone"
    world.live_through(60)
    check_sound(world)
    restarted(world)
    check_sound(world)


def test_one_wrong_reading_during_a_flush_drops_no_row_from_the_view_or_an_answer(
    world: ClocksWorld,
) -> None:
    """At this point, expired rows are removed from the manifest's view."""
    world.start()
    world.live_through(180)
    rows = world.running.view.row_count
    world.pass_time(HOUR)
    world.scrape()
    world.read_all()
    while world.running.flusher.step() == 0:
        pass
    world.set_node_ahead(300 * DAY)
    world.running.step()
    assert world.found() == world.expected()
    world.set_node_ahead(0)
    world.settle()
    assert world.running.view.row_count > rows
    check_sound(world)


# Scenario 40: a leader whose clock is slow, and records without a time.


def test_buckets_close_though_the_brokers_clock_is_slow(world: ClocksWorld) -> None:
    world.brokers_ahead = -15 * MINUTE
    world.start()
    world.live_through(240)
    check_sound(world)
    # A bucket is overdue a grace after its deadline, and records come every ten minutes.
    assert max(bucket for bucket, _, _ in cuts_of(world)) == world.true_ms // HOUR - 1
    restarted(world)
    check_sound(world)


def test_buckets_close_though_records_have_no_time(world: ClocksWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.start()
    append = world.log.append
    monkeypatch.setattr(world.log, "append", lambda value, _time, **options: append(value, NO_TIME, **options))
    world.live_through(240)
    check_sound(world)
    assert max(bucket for bucket, _, _ in cuts_of(world)) == world.true_ms // HOUR - 1
    restarted(world)
    check_sound(world)


def test_a_busy_log_does_not_keep_an_overdue_bucket_open(world: ClocksWorld) -> None:
    """Records arrive faster than the end can be reached: the bucket ends at the log's end at the time of the
    request.
    """
    world.options = replace(world.options, poll_records=1)
    world.brokers_ahead = -3 * HOUR
    world.start()
    world.live_through(30)
    world.pass_time(40 * MINUTE)
    for _ in range(200):
        world.scrape()
        world.running.step()
        world.pass_time(1_000)
    assert cuts_of(world)[-1][0] >= FIRST - 1
    world.settle()
    check_sound(world)
    assert max(bucket for bucket, _, _ in cuts_of(world)) == FIRST


def test_no_hour_is_ready_before_its_end_even_if_its_buckets_were_cut_early(world: ClocksWorld) -> None:
    """As an older version may have left it."""
    world.start()
    world.live_through(180)
    stored = StoredDataset("metrics", cutting_of(world), world.options.groups, [world.manifest()], 0, world.true_ms)
    early = replace(stored, present=(FIRST + 1) * HOUR - 1)
    assert readiness(early, Period(FIRST)).verdict is Verdict.NOT_READY
    assert readiness(stored, Period(FIRST)).verdict is Verdict.READY

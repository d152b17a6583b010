"""Reading the readiness of a dataset in the background."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from strandline.errors import Retryable
from strandline.index.policy import BucketPolicy
from strandline.node.metrics.readiness_watch import ReadinessUnknown, ReadinessWatch
from strandline.node.offsets.deployment import Deployment, NoSuchDataset
from strandline.node.offsets.rewinding import do_rewind
from strandline.node.settings import Settings
from strandline.node.settings.units import Duration
from strandline.recovery.offset_policy import Accepted
from strandline.recovery.periods import Period
from strandline.recovery.readiness import Verdict, newest_ready_hour, partition_progress
from strandline.recovery.rewinding import ToBucket
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ShardId
from support.offsets_commands import MemoryTopic
from support.shard_world import (
    GRACE,
    HOUR,
    START,
    StoreCall,
    World,
    group_fails,
    no_fault,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.unit

FIRST = START // HOUR
KEPT = 30 * 24 * HOUR


class Opener:
    """Opens a world's dataset, counts the calls, and may fail."""

    def __init__(self, world: World, *others: World) -> None:
        self.world, self.topic = world, MemoryTopic(world, *others, retention_ms=KEPT)
        self.failing: Exception | None = None
        self.opened = self.closed = 0

    def __call__(self) -> AbstractContextManager[Deployment]:
        return self._open()

    def deployment(self) -> Deployment:
        settings = Settings().dataset.model_copy(update={"grace": Duration(self.world.options.grace)})
        return Deployment.of(settings, self.world.store, self.topic, self.world.clock)  # type: ignore[arg-type]  # hooks

    @contextmanager
    def _open(self) -> Iterator[Deployment]:
        if self.failing is not None:
            raise self.failing
        self.opened += 1
        try:
            yield self.deployment()
        finally:
            self.closed += 1


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A shard that has stored two hours."""
    with closing(World(tmp_path)) as started:
        started.start()
        for hour in range(2):
            produce_everywhere(started, str(hour))
            started.pass_hours(1)
        yield started


@pytest.fixture
def opener(world: World) -> Opener:
    return Opener(world)


@pytest.fixture
def watch(opener: Opener, world: World) -> Iterator[ReadinessWatch]:
    with closing(ReadinessWatch(opener, world.clock)) as started:
        yield started


def manifest_reads(world: World) -> list[Any]:
    """Records the first buckets from which manifests are read."""
    firsts: list[Any] = []
    read = world.sqlite.manifest

    def record(shard: ShardId, *, first: int | None = None) -> Any:
        firsts.append(first)
        return read(shard, first=first)

    world.sqlite.manifest = record  # type: ignore[method-assign]
    return firsts


def test_before_the_first_poll_readiness_is_unknown(watch: ReadinessWatch, opener: Opener) -> None:
    figures = watch.figures()
    assert (figures.looked_at, figures.newest_ready_hour, figures.partitions, figures.failures) == (None, None, (), 0)
    assert opener.opened == 0, "a node starts without the store"


def test_a_poll_finds_the_newest_ready_hour_and_how_far_each_partition_is_stored(
    watch: ReadinessWatch, world: World
) -> None:
    watch.poll()
    figures = watch.figures()
    assert (figures.looked_at, figures.newest_ready_hour) == (world.clock.now_ms(), FIRST + 1)
    (partition,) = figures.partitions
    assert (partition.shard, partition.reached_bucket, partition.stored_until) == (0, FIRST + 1, (FIRST + 2) * HOUR)
    assert (figures.flush_interval, figures.kafka_retention) == (HOUR, KEPT)


def test_polls_follow_the_shard_and_read_only_the_rows_they_need(watch: ReadinessWatch, world: World) -> None:
    watch.poll()
    firsts = manifest_reads(world)
    for passed in range(1, 6):
        produce_everywhere(world, f"later {passed}")
        world.pass_hours(1)
        watch.poll()
        assert watch.figures().newest_ready_hour == FIRST + 1 + passed
    assert len(firsts) == 5, "one read per poll"
    assert None not in firsts
    assert firsts == sorted(firsts)
    assert firsts[-1] >= FIRST + 3


def test_a_poll_gives_the_same_result_as_complete_manifests(tmp_path: Path) -> None:
    """With buckets of 15 minutes, not every bucket makes an hour ready."""
    policy = BucketPolicy(flush_interval=HOUR // 4, retention=5 * HOUR, margin=6 * HOUR, stale_after=HOUR)
    with closing(World(tmp_path, policy=policy, grace=GRACE)) as world:
        world.start()
        opener = Opener(world)
        with closing(ReadinessWatch(opener, world.clock)) as watch:
            ready_hours = set()
            for step in range(30):
                produce_everywhere(world, str(step % 3))
                world.pass_time(HOUR // 8)
                world.settle()
                watch.poll()
                complete = opener.deployment().stored(opener.topic.now())
                figures = watch.figures()
                assert figures.newest_ready_hour == newest_ready_hour(complete)
                assert figures.partitions == partition_progress(complete, world.clock.now_ms())
                ready_hours.add(figures.newest_ready_hour)
            assert len(ready_hours) >= 4


def test_losses_one_after_another_do_not_hide_the_newest_ready_hour(watch: ReadinessWatch, world: World) -> None:
    """Each loss closes a bucket that does not complete its hour."""
    for _ in range(6):
        watch.poll()
        assert watch.figures().newest_ready_hour == FIRST + 1
        produce_everywhere(world)
        world.read_all()
        world.crash()
        end = world.log.ends().high
        world.log.delete_before(end)
        world.start(accepted=Accepted(loss_to=end))
        world.settle()
    # All records since the first loss are in the bucket after the last one.
    world.pass_hours(7)
    watch.poll()
    assert watch.figures().newest_ready_hour == FIRST + 8


def test_a_partition_that_stays_behind_is_reported(watch: ReadinessWatch, world: World) -> None:
    watch.poll()
    world.store.before = group_fails(other_group(world))
    for _ in range(3):
        produce_everywhere(world)
        world.pass_time(HOUR)
        world.read_all()
        world.store_due()
    world.store.before = no_fault
    watch.poll()
    figures = watch.figures()
    assert figures.newest_ready_hour == FIRST + 1
    assert figures.partitions[0].reached_bucket == FIRST + 1
    assert figures.partitions[0].behind_ms == world.clock.now_ms() - (FIRST + 2) * HOUR


def test_the_first_poll_after_a_rewind_shows_it(watch: ReadinessWatch, world: World, opener: Opener) -> None:
    for hour in range(4):
        produce_everywhere(world, f"more {hour}")
        world.pass_hours(1)
    watch.poll()
    assert watch.figures().newest_ready_hour == FIRST + 5
    world.crash()
    do_rewind(opener.deployment(), 0, ToBucket(FIRST + 2), by_force=True)
    watch.poll()
    figures = watch.figures()
    assert figures.partitions[0].reached_bucket == FIRST + 1
    assert figures.newest_ready_hour == FIRST + 1


def test_while_a_partition_was_never_read_no_hour_is_ready(tmp_path: Path, world: World) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with ExitStack() as stack:
        other = stack.enter_context(closing(World(folder)))
        watch = stack.enter_context(closing(ReadinessWatch(Opener(world, other), world.clock)))
        watch.poll()
        figures = watch.figures()
        assert figures.newest_ready_hour is None
        assert [partition.stored_until for partition in figures.partitions] == [(FIRST + 2) * HOUR, None]


def test_a_failed_poll_is_counted_and_keeps_the_previous_result(watch: ReadinessWatch, world: World) -> None:
    watch.poll()
    previous = watch.figures()

    def fail_manifest(call: StoreCall) -> None:
        if call.name == "manifest":
            raise StoreUnavailable("the store is not there")

    world.store.before = fail_manifest
    world.pass_time(30_000)
    with capture_logs() as logs:
        watch.poll()
        watch.poll()
    assert watch.figures() == replace(previous, failures=2)
    assert [log["log_level"] for log in logs] == ["warning"], "it is logged once"
    world.store.before = no_fault
    watch.poll()
    assert watch.figures().looked_at == world.clock.now_ms()
    assert watch.figures().failures == 2


def test_an_unexpected_error_does_not_end_the_watch(watch: ReadinessWatch, world: World) -> None:
    def fail(_call: StoreCall) -> None:
        raise KeyError("a bug")

    watch.poll()
    world.store.before = fail
    with capture_logs() as logs:
        watch.poll()
    assert [log["log_level"] for log in logs] == ["error"]
    assert watch.figures().failures == 1


def test_a_missing_dataset_is_opened_once_it_exists(watch: ReadinessWatch, opener: Opener) -> None:
    opener.failing = NoSuchDataset("no shard was ever started")
    watch.poll()
    assert (watch.figures().failures, watch.figures().looked_at) == (1, None)
    opener.failing = None
    watch.poll()
    watch.poll()
    assert watch.figures().newest_ready_hour == FIRST + 1
    assert opener.opened == 1
    watch.close()
    assert opener.closed == 1


def test_a_request_uses_the_current_manifests(watch: ReadinessWatch, world: World) -> None:
    hour = Period(FIRST + 2)
    assert not watch.check_ready(hour).ready
    produce_everywhere(world)
    world.pass_hours(1)
    assert watch.check_ready(hour).ready
    assert [readiness.verdict for readiness in watch.hours(FIRST, FIRST + 3)] == [Verdict.READY] * 3 + [
        Verdict.NOT_READY
    ]
    assert watch.figures().looked_at is None


def test_a_request_reports_why_readiness_is_unknown(watch: ReadinessWatch, opener: Opener) -> None:
    opener.failing = StoreUnavailable("the store is not there")
    with pytest.raises(Retryable, match="the store is not there"):
        watch.check_ready(Period(FIRST))
    opener.failing = None
    watch.close()
    with pytest.raises(ReadinessUnknown, match="being stopped"):
        watch.check_ready(Period(FIRST))


def test_a_thread_polls_until_it_is_closed(opener: Opener, world: World) -> None:
    first_poll, second_poll = threading.Event(), threading.Event()

    def record(call: StoreCall) -> None:
        if call.name == "manifest":
            (second_poll if first_poll.is_set() else first_poll).set()

    world.store.after = record
    watch = ReadinessWatch(opener, world.clock, interval_s=0.001)
    watch.start()
    assert first_poll.wait(60)
    assert second_poll.wait(60)
    watch.close()
    assert "readiness" not in {thread.name for thread in threading.enumerate()}
    assert watch.figures().newest_ready_hour == FIRST + 1
    assert (opener.opened, opener.closed) == (1, 1)

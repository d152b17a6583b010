"""One moment of a shard, read in blocks while the shard continues."""

from collections.abc import Callable
from contextlib import closing

import numpy as np
import pytest

from strandline.node.shard.pinned_read import PinnedRead
from strandline.node.shard.reader import ShardReader
from strandline.store.segment_codec import SegmentDamaged
from strandline.store.selecting import WantedSeries
from strandline.store.series_run import SeriesRun
from strandline.time_range import ALL_TIMES, TimeRange
from support.series_runs import are_same, model_of
from support.shard_world import HOUR, MINUTE, START, StoreCall, World

pytestmark = pytest.mark.simulation

SERIES = [(f"m{metric}", name) for metric in range(6) for name in "abc"]


def scrape(world: World, value: float) -> None:
    now = world.clock.now_ms()
    world.produce(*((metric, name, now, value) for metric, name in SERIES))


def live(world: World, scrapes: int) -> None:
    for number in range(scrapes):
        scrape(world, number)
        world.read_all()
        world.pass_time(MINUTE)


def wanted_of(world: World) -> WantedSeries:
    rows = world.running.index.columns.rows
    order = np.lexsort((rows.key_low, rows.key_high, rows.metric))
    return WantedSeries(rows.metric[order], rows.key_high[order], rows.key_low[order])


def in_blocks(pinned: PinnedRead, wanted: WantedSeries, most: int) -> dict:
    found: dict = {}
    for block in pinned.blocks(wanted, most):
        found |= model_of(pinned.read(block))
    return found


@pytest.fixture
def of_all_kinds(world: World) -> World:
    """A shard with samples in segments, in a closed bucket with some stored groups, and in the open bucket."""
    world.start()
    live(world, 10)
    world.settle()
    world.pass_hours(1)
    live(world, 10)
    world.pass_time(HOUR)
    scrape(world, 50.0)
    world.read_all()
    world.store_due(most=3)
    late = world.clock.now_ms() - HOUR
    world.produce(("m0", "a", late, -1.0), ("m1", "b", START, -2.0))
    world.read_all()
    return world


def test_the_fixture_has_samples_of_all_kinds(of_all_kinds: World) -> None:
    shard = of_all_kinds.running
    (closed,) = shard.flusher.closed_buckets()
    stored = {row.group for row in shard.view.overlapping(0, ALL_TIMES.last, 0) if row.bucket == closed.bucket}
    assert stored
    assert stored < set(range(of_all_kinds.options.groups))
    assert shard.buffer.status().samples > 0


@pytest.mark.parametrize("most", [1, 25, 60, 10_000])
def test_reading_in_blocks_gives_the_same_samples_as_a_single_read(of_all_kinds: World, most: int) -> None:
    wanted = wanted_of(of_all_kinds)
    with closing(ShardReader(of_all_kinds.running)) as reader:
        whole = model_of(reader.read(wanted, ALL_TIMES))
        pinned = reader.pinned(TimeRange(START, START + 3 * HOUR))
        assert in_blocks(pinned, wanted, most) == whole
        assert sum(map(len, whole.values())) == sum(map(len, of_all_kinds.expected().values()))
        assert (len(pinned.blocks(wanted, most)) > 1) == (most < 10_000)
        assert len(pinned.blocks(WantedSeries.of([]), most)) == 0


def test_only_times_within_the_pinned_range_can_be_read(of_all_kinds: World) -> None:
    wanted = wanted_of(of_all_kinds)
    with closing(ShardReader(of_all_kinds.running)) as reader:
        pinned = reader.pinned(TimeRange(START, START + 2 * HOUR))
        part = TimeRange(START + 3 * MINUTE, START + HOUR + 5 * MINUTE)
        assert are_same(pinned.read(wanted, part), reader.read(wanted, part))
        for other in (TimeRange(START - 1, START), TimeRange(START, START + 2 * HOUR + 1)):
            with pytest.raises(ValueError, match="was pinned"):
                pinned.read(wanted, other)


def test_changes_after_the_pin_are_invisible(of_all_kinds: World) -> None:
    world = of_all_kinds
    wanted = wanted_of(world)
    with closing(ShardReader(world.running)) as reader:
        pinned = reader.pinned(ALL_TIMES)
        before = in_blocks(pinned, wanted, 25)
        world.produce(("m0", "a", START + 1, 77.0), ("m5", "c", START + 2 * HOUR, 78.0))
        world.pass_hours(2)
        assert not world.running.flusher.closed_buckets()
        assert in_blocks(pinned, wanted, 25) == before
        assert model_of(reader.read(wanted, ALL_TIMES)) != before


def test_a_block_that_is_read_while_a_group_is_committed_has_every_sample_once(of_all_kinds: World) -> None:
    world = of_all_kinds
    wanted = wanted_of(world)
    found: list[dict] = []
    with closing(ShardReader(world.running)) as reader:
        expected = model_of(reader.read(wanted, ALL_TIMES))

        def look(call: StoreCall) -> None:
            if call.name in ("write_segments", "commit"):
                world.store.before = world.store.after = lambda _call: None
                found.append(in_blocks(reader.pinned(ALL_TIMES), wanted, 25))
                world.store.before = world.store.after = look

        world.store.before = world.store.after = look
        world.store_due()
    assert len(found) > 4
    assert all(block == expected for block in found)


def test_without_values_there_are_all_times(of_all_kinds: World) -> None:
    wanted = wanted_of(of_all_kinds)
    with closing(ShardReader(of_all_kinds.running)) as reader:
        whole, counted = (reader.read(wanted, ALL_TIMES, with_values=with_values) for with_values in (True, False))
    assert np.array_equal(whole.time, counted.time)
    assert np.array_equal(whole.first_sample, counted.first_sample)


@pytest.mark.parametrize("series", [1, len(SERIES)], ids=["one series", "all series"])
def test_an_exception_during_a_block_ends_the_read(
    of_all_kinds: World, monkeypatch: pytest.MonkeyPatch, series: int
) -> None:
    class EnoughError(Exception):
        pass

    def enough(samples: int) -> None:
        if samples:
            raise EnoughError

    def damaged(*_arguments: object, **_options: object) -> SeriesRun:
        raise SegmentDamaged("segment x is damaged")

    wanted = wanted_of(of_all_kinds).take(np.arange(series))
    with closing(ShardReader(of_all_kinds.running)) as reader:
        pinned = reader.pinned(ALL_TIMES)
        with pytest.raises(EnoughError):
            pinned.read(wanted, on_samples=enough)
        monkeypatch.setattr("strandline.node.shard.pinned_read.select", damaged)
        with pytest.raises(SegmentDamaged):
            pinned.read(wanted)


# The content of a later moment, with regard to the samples of an earlier one.

NOW = TimeRange(START, START + 5 * HOUR)


@pytest.mark.parametrize(
    ("happens", "unchanged_before"),
    [
        (lambda _world: None, NOW.last + 1),
        (lambda world: world.produce(("m0", "a", START + 7, 1.0)), START + 7),
        (lambda world: world.produce(("m0", "a", START - 7, 1.0)), START),
        (lambda world: world.produce(("m0", "a", NOW.last + 7, 1.0)), NOW.last + 1),
    ],
    ids=["nothing", "a late sample", "one before the times", "one behind the times"],
)
def test_newer_samples_are_reported_by_their_least_time(
    of_all_kinds: World, happens: Callable[[World], None], unchanged_before: int
) -> None:
    with closing(ShardReader(of_all_kinds.running)) as reader:
        before = reader.pinned(NOW).content
        happens(of_all_kinds)
        of_all_kinds.running.step()
        assert reader.pinned(NOW).unchanged_before(before) == unchanged_before


def test_a_newer_sample_is_never_hidden(of_all_kinds: World) -> None:
    """Regardless of cuts, seals and flushes in between."""
    world = of_all_kinds
    wanted = wanted_of(world)
    with closing(ShardReader(world.running)) as reader:
        pins = []
        for number in range(40):
            pinned = reader.pinned(NOW)
            now = model_of(pinned.read(wanted))
            for content, earlier in pins:
                until = pinned.unchanged_before(content)
                for key in now | earlier:
                    assert _up_to(now, key, until) == _up_to(earlier, key, until)
            pins.append((pinned.content, now))
            metric, name = SERIES[number % len(SERIES)]
            world.produce((metric, name, START + (number * 17 % 180) * MINUTE, 1_000.0 + number))
            world.pass_time(9 * MINUTE)
            world.read_all()
            world.store_due(most=number % 3)
        # Most of it is also in the content of a later moment.
        assert reader.pinned(NOW).unchanged_before(reader.pinned(NOW).content) > NOW.last


def _up_to(model: dict, key: tuple[int, int, int], until: int) -> dict[int, int]:
    return {time: bits for time, bits in model.get(key, {}).items() if time < until}


def test_content_of_other_times_or_an_earlier_process_reports_what_it_can(of_all_kinds: World) -> None:
    shard = of_all_kinds.running
    with closing(ShardReader(shard)) as reader, closing(ShardReader(shard)) as other:
        content = reader.pinned(NOW).content
        assert other.pinned(NOW).unchanged_before(content) == NOW.first
        moved = TimeRange(NOW.first + HOUR, NOW.last + HOUR)
        assert reader.pinned(moved).unchanged_before(content) == NOW.last + 1
        wider = TimeRange(NOW.first - 1, NOW.last)
        assert reader.pinned(wider).unchanged_before(content) == wider.first

"""There is one fault in segments or in their row, and exactly that is found."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from strandline.recovery.verification.findings import FindingKind
from strandline.recovery.verification.shard import Scope
from strandline.store.merging import merge_runs
from strandline.store.rows import GroupRow, Lifetime, SegmentsOf
from strandline.store.segment_codec import decode_segment, encode_run, runs_checksum
from strandline.store.series_run import SeriesRun
from support.shard_world import HOUR, METRICS, World, other_group
from support.verifying import Damage, assert_world_sound, copy_of, findings_of, only_finding

pytestmark = pytest.mark.unit

FIRST = 1_000


@dataclass
class Stored:
    """A group of a bucket in the middle, which has some segments."""

    world: World
    damage: Damage
    bucket: int
    group: int

    @property
    def row(self) -> GroupRow:
        return self.world.rows(self.bucket)[self.group]

    def split(self, target_bytes: int) -> None:
        """Store the group in segments of another size."""
        row = self.row
        (segment,) = self.damage.segments_of(row)
        run = decode_segment(segment.data, named="test")
        self.put(encode_run(run, target_bytes=target_bytes))

    def put(self, segments: list) -> None:  # type: ignore[type-arg]
        """Store others in their place, with a row that references them."""
        row = self.row
        self.damage.execute(
            "DELETE FROM segments WHERE bucket = ? AND flush_group = ? AND attempt = ?",
            row.bucket,
            row.group,
            row.attempt,
        )
        where = SegmentsOf(self.world.options.shard, row.bucket, row.group, row.attempt)
        self.world.sqlite.write_segments(where, segments, Lifetime.until(row.data_expires, self.world.clock.now_ms()))
        self.damage.row(self.bucket, self.group, segments=len(segments), checksum=runs_checksum(segments))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with closing(World(tmp_path_factory.mktemp("sound"))) as world:
        world.start()
        for hour in range(4):
            for scrape in range(6):
                now = world.clock.now_ms() + scrape
                world.produce(
                    *((metric, name, now, float(hour)) for metric in METRICS for name in "abc"),
                    *((metric, "a", now - 2 * HOUR, 0.0) for metric in METRICS),
                )
            world.pass_hours(1)
            if hour == 1:
                world.crash()
                world.start()
        world.crash()
        made = Stored(world, Damage(world), FIRST + 2, other_group(world))
        made.split(target_bytes=300)
        assert made.row.segments > 3
        assert_world_sound(world)
        yield world


@pytest.fixture
def stored(sound: World, tmp_path: Path) -> Iterator[Stored]:
    with closing(copy_of(sound, tmp_path)) as world:
        yield Stored(world, Damage(world), FIRST + 2, other_group(world))


def test_a_segment_is_missing(stored: Stored) -> None:
    segment = stored.damage.segments_of(stored.row)[1]
    expected_segments = stored.row.segments
    stored.damage.execute(
        "DELETE FROM segments WHERE bucket = ? AND first = ? AND seq = ?", stored.bucket, segment.first, segment.seq
    )
    found = only_finding(stored.world, FindingKind.SEGMENT_MISSING)
    assert (found.bucket, found.group) == (stored.bucket, stored.group)
    assert (
        f"{expected_segments - 1} segments of group {stored.group} exist under attempt {stored.row.attempt}"
        in found.what
    )
    assert f"states {expected_segments}" in found.what


def test_all_segments_are_missing(stored: Stored) -> None:
    stored.damage.execute("DELETE FROM segments WHERE bucket = ? AND flush_group = ?", stored.bucket, stored.group)
    assert "0 segments" in only_finding(stored.world, FindingKind.SEGMENT_MISSING).what


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("where", [0, 9, -1])
def test_a_byte_of_a_segment_is_changed(stored: Stored, where: int, *, samples: bool) -> None:
    segment = stored.damage.segments_of(stored.row)[2]
    data = bytearray(segment.data)
    data[where] ^= 0x10
    stored.damage.execute(
        "UPDATE segments SET data = ? WHERE bucket = ? AND first = ? AND seq = ?",
        bytes(data),
        stored.bucket,
        segment.first,
        segment.seq,
    )
    found = only_finding(stored.world, FindingKind.SEGMENT_DAMAGED, Scope(samples=samples))
    assert (found.bucket, found.group) == (stored.bucket, stored.group)
    assert segment.first.hex() in found.what


def test_a_wrong_checksum(stored: Stored) -> None:
    stored.damage.row(stored.bucket, stored.group, checksum=bytes(16))
    assert bytes(16).hex() in only_finding(stored.world, FindingKind.SEGMENT_CHECKSUM).what


@pytest.mark.parametrize("samples", [True, False])
@pytest.mark.parametrize("column", ["series", "samples", "least_time", "greatest_time"])
def test_a_wrong_sum(stored: Stored, column: str, *, samples: bool) -> None:
    stated = getattr(stored.row, column)
    stored.damage.row(stored.bucket, stored.group, **{column: stated + 1})
    found = only_finding(stored.world, FindingKind.SEGMENT_SUMS, Scope(samples=samples))
    assert f"have {stated} " in found.what
    assert found.what.endswith(f"its row states {stated + 1}")


def test_a_wrong_number_of_late_samples(stored: Stored) -> None:
    (late,) = stored.row.late
    stored.damage.late(stored.bucket, stored.group, (late.hour, late.samples - 1))
    found = only_finding(stored.world, FindingKind.LATE_SAMPLES)
    assert f"{late.hour}: {late.samples}, but its row states {late.hour}: {late.samples - 1}" in found.what
    stored.damage.late(stored.bucket, stored.group)
    assert only_finding(stored.world, FindingKind.LATE_SAMPLES).what.endswith("its row states none")
    assert findings_of(stored.world, Scope(samples=False)) == ()


def test_a_segment_under_the_name_of_another_series(stored: Stored) -> None:
    segment = stored.damage.segments_of(stored.row)[1]
    last = segment.first[:-1] + bytes([segment.first[-1] ^ 1])
    stored.damage.execute(
        "UPDATE segments SET first = ? WHERE bucket = ? AND first = ? AND seq = ?",
        last,
        stored.bucket,
        segment.first,
        segment.seq,
    )
    found = only_finding(stored.world, FindingKind.SEGMENT_ORDER)
    assert segment.first.hex() in found.what


def test_a_segment_with_another_number(stored: Stored) -> None:
    segment = stored.damage.segments_of(stored.row)[1]
    stored.damage.execute(
        "UPDATE segments SET seq = seq + 5 WHERE bucket = ? AND first = ? AND seq = ?",
        stored.bucket,
        segment.first,
        segment.seq,
    )
    assert "should" in only_finding(stored.world, FindingKind.SEGMENT_ORDER).what


def runs_of(stored: Stored) -> list[SeriesRun]:
    return [decode_segment(segment.data, named="test") for segment in stored.damage.segments_of(stored.row)]


def test_a_series_that_occurs_twice_with_the_same_times(stored: Stored) -> None:
    """The last series of a segment is repeated as the first of the next one, with the same times."""
    segments = stored.damage.segments_of(stored.row)
    run = runs_of(stored)[0]
    last = SeriesRun(
        run.metric[-1:],
        run.key_high[-1:],
        run.key_low[-1:],
        np.array([0, 1], dtype=np.int64),
        run.time[-1:],
        run.value[-1:],
    )
    (again,) = encode_run(last)
    stored.put([segments[0], again, *segments[1:]])
    found = findings_of(stored.world)
    assert [finding.kind for finding in found] == [FindingKind.SEGMENT_ORDER]
    assert "at a time that is not after the previous segment" in found[0].what


def picked(run: SeriesRun, *series: int) -> SeriesRun:
    """Some series of a run."""
    places = [np.arange(run.first_sample[row], run.first_sample[row + 1]) for row in series]
    rows = np.concatenate(places)
    return SeriesRun(
        run.metric[list(series)],
        run.key_high[list(series)],
        run.key_low[list(series)],
        np.cumsum([0, *map(len, places)]),
        run.time[rows],
        run.value[rows],
    )


def test_series_that_are_not_in_order_from_one_segment_to_the_next(stored: Stored) -> None:
    run = merge_runs(runs_of(stored))
    assert len(run) > 4
    pieces = ((0, 2), (1,), tuple(range(3, len(run))))
    stored.put([segment for piece in pieces for segment in encode_run(picked(run, *piece))])
    found = only_finding(stored.world, FindingKind.SEGMENT_ORDER)
    assert "starts with a series that sorts before" in found.what


def test_the_times_of_a_series_are_those_of_all_its_segments(stored: Stored) -> None:
    run = merge_runs(runs_of(stored))
    stored.put(encode_run(run, target_bytes=40))
    assert any(segment.seq for segment in stored.damage.segments_of(stored.row)), "series continue in another segment"
    assert_world_sound(stored.world)
    stored.damage.rewrite_index(
        stored.bucket, lambda contents: contents.active.update(dict.fromkeys(contents.active, HOUR))
    )
    wrong = [finding for finding in findings_of(stored.world) if finding.group == stored.group]
    assert [finding.kind for finding in wrong] == [FindingKind.ACTIVE_TIMES]
    assert f": {len(run)}, the first is" in wrong[0].what
    (first_part, *_) = runs_of(stored)
    low = int(first_part.time[0])
    stored.damage.rewrite_index(
        stored.bucket, lambda contents: contents.active.update(dict.fromkeys(contents.active, low))
    )
    wrong = [finding for finding in findings_of(stored.world) if finding.group == stored.group]
    assert [finding.kind for finding in wrong] == [FindingKind.ACTIVE_TIMES], "later segments contain later times"


@pytest.mark.parametrize("samples", [True, False])
def test_series_of_several_segments_count_once_if_their_keys_are_lost(stored: Stored, *, samples: bool) -> None:
    """With all samples, and from the directories of segments alone."""
    first = Stored(stored.world, stored.damage, FIRST, stored.group)
    (whole,) = runs_of(first)
    first.put(encode_run(whole, target_bytes=40))
    assert any(segment.seq for segment in stored.damage.segments_of(first.row)), "series continue in another segment"
    stored.damage.execute("DELETE FROM index_buckets WHERE bucket = ?", FIRST)
    found = only_finding(stored.world, FindingKind.INDEX_DAMAGED, Scope(samples=samples))
    rows = stored.world.rows(FIRST).values()
    series, all_samples = sum(row.series for row in rows), sum(row.samples for row in rows)
    assert series == len(METRICS) * 3
    assert f"In its segments {series} series with {all_samples} samples between" in found.what


def test_a_series_of_another_group(stored: Stored) -> None:
    """One more series, at the end, that belongs to another group."""
    row = stored.row
    run = SeriesRun(
        np.array([2**64 - 4 + (stored.group + 1) % 4], dtype=np.uint64),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([2**64 - 1], dtype=np.uint64),
        np.array([0, 1], dtype=np.int64),
        np.array([row.greatest_time], dtype=np.int64),
        np.array([1.0]),
    )
    stored.put([*stored.damage.segments_of(row), *encode_run(run)])
    stored.damage.row(stored.bucket, stored.group, series=row.series + 1, samples=row.samples + 1)
    found = only_finding(stored.world, FindingKind.WRONG_GROUP)
    assert found.what.startswith("1 series in the segments of group")


def test_segments_that_no_row_references_are_ignored(stored: Stored) -> None:
    segments = stored.damage.segments_of(stored.row)
    where = SegmentsOf(stored.world.options.shard, stored.bucket, stored.group, "of a zombie")
    stored.world.sqlite.write_segments(
        where, segments[:1], Lifetime.until(stored.row.data_expires, stored.world.clock.now_ms())
    )
    assert_world_sound(stored.world)


def test_one_more_segment_than_the_row_names(stored: Stored) -> None:
    stored.damage.row(stored.bucket, stored.group, segments=stored.row.segments - 1)
    assert "but its row states" in only_finding(stored.world, FindingKind.SEGMENT_ORDER).what


def test_a_finding_does_not_stop_the_other_checks(stored: Stored) -> None:
    stored.damage.row(FIRST, stored.group, checksum=bytes(16))
    stored.damage.row(stored.bucket, stored.group, samples=1)
    stored.damage.execute("DELETE FROM segments WHERE bucket = ? AND flush_group = ?", FIRST + 3, stored.group)
    found = findings_of(stored.world)
    assert [(finding.kind, finding.bucket) for finding in found] == [
        (FindingKind.SEGMENT_CHECKSUM, FIRST),
        (FindingKind.SEGMENT_SUMS, stored.bucket),
        (FindingKind.SEGMENT_MISSING, FIRST + 3),
    ]

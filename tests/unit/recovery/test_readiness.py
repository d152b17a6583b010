"""When an hour or a day is ready, by the rows of all partitions."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import (
    BehindPartition,
    PartitionProgress,
    Verdict,
    bucket_of_hour,
    newest_ready_hour,
    partition_progress,
    readiness,
)
from strandline.store.rows import LateSamples, ManifestRows
from support.manifest_rows import manifest
from support.stored_partitions import (
    GROUPS,
    MINUTE,
    H,
    closed_by_loss,
    read_up_to,
    readiness_of,
    rewound,
    stored,
    without,
)

pytestmark = pytest.mark.unit


# One hour.


def test_an_hour_is_ready_when_every_group_of_every_partition_has_its_row() -> None:
    found = readiness_of(stored(read_up_to(H), read_up_to(H + 3)))
    assert (found.verdict, found.revision, found.late_samples) == (Verdict.READY, 0, 0)
    assert (found.behind, found.losses, found.started_later) == ((), (), ())
    assert (found.period, found.hours, found.ready_hours, found.first_not_ready) == ("1970-01-05T04", 1, 1, None)


def test_a_partition_without_one_group_s_row_is_behind_by_a_bucket() -> None:
    found = readiness_of(stored(read_up_to(H), without(read_up_to(H), (H, 1))))
    assert found.verdict is Verdict.NOT_READY
    assert found.behind == (BehindPartition(1, H, H - 1, (1,), HOUR),)
    assert found.first_not_ready == "1970-01-05T04"


@pytest.mark.parametrize("interval", [5 * MINUTE, 15 * MINUTE])
def test_trap_an_hour_is_not_ready_when_the_slowest_partition_has_read_its_first_minutes(interval: int) -> None:
    """With several buckets an hour it is the last one that counts, not the first."""
    an_hour = HOUR // interval
    first, last = H * an_hour, (H + 1) * an_hour - 1
    assert bucket_of_hour(H, interval) == last
    ahead = read_up_to(last, began=first - 5)
    for reached in range(first - 1, last):
        behind = read_up_to(reached, began=first - 5)
        found = readiness_of(stored(ahead, behind, interval=interval))
        assert found.verdict is Verdict.NOT_READY
        assert found.behind == (BehindPartition(1, last, reached, (0, 1), (last - reached) * interval),)
    assert readiness_of(stored(ahead, ahead, interval=interval)).verdict is Verdict.READY


def test_a_bucket_of_several_hours_makes_all_of_them_ready_at_once() -> None:
    interval = 6 * HOUR
    dataset = stored(read_up_to(20, began=10), interval=interval)
    for hour in range(120, 126):
        assert bucket_of_hour(hour, interval) == 20
        assert readiness_of(dataset, hour).verdict is Verdict.READY
    found = readiness_of(dataset, 126)
    assert (found.verdict, found.behind) == (Verdict.NOT_READY, (BehindPartition(0, 21, 20, (0, 1), HOUR),))


def test_a_bucket_of_a_day_makes_the_day_ready() -> None:
    dataset = stored(read_up_to(20, began=10), interval=24 * HOUR)
    assert readiness(dataset, Period(20 * 24, 24)).verdict is Verdict.READY
    assert readiness(dataset, Period(21 * 24, 24)).verdict is Verdict.NOT_READY


def test_a_row_after_a_hole_does_not_make_its_hour_ready() -> None:
    holed = without(read_up_to(H), (H - 1, 0))
    assert readiness_of(stored(holed)).behind == (BehindPartition(0, H, H - 2, (0,), 2 * HOUR),)


def test_a_superseded_row_counts_as_none() -> None:
    found = readiness_of(stored(rewound(read_up_to(H + 2), H)))
    assert (found.verdict, found.behind) == (Verdict.NOT_READY, (BehindPartition(0, H, H - 1, (0, 1), HOUR),))
    assert readiness_of(stored(rewound(read_up_to(H + 2), H + 1))).verdict is Verdict.READY


def test_a_cut_alone_makes_nothing_ready() -> None:
    rows = read_up_to(H)
    assert readiness_of(stored(without(rows, (H, 0), (H, 1)))).verdict is Verdict.NOT_READY


def test_a_partition_that_started_later_does_not_count() -> None:
    for began in (H, H + 1, H + 5):
        found = readiness_of(stored(read_up_to(H), read_up_to(H + 6, began=began)))
        assert (found.verdict, found.started_later) == (Verdict.READY, (1,))
    found = readiness_of(stored(read_up_to(H), read_up_to(H - 1, began=H - 1)))
    assert found.verdict is Verdict.NOT_READY, "it began with the hour's own bucket, and has not stored it"


def test_an_hour_before_any_partition_was_read_is_not_ready() -> None:
    found = readiness_of(stored(read_up_to(H + 6, began=H), read_up_to(H + 6, began=H + 2)))
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, "no partition was read yet")


def test_a_partition_that_was_never_read_is_behind() -> None:
    for unread in (None, manifest([])):
        found = readiness_of(stored(read_up_to(H), unread))
        assert found.verdict is Verdict.NOT_READY
        assert found.behind == (BehindPartition(1, H, None, (0, 1), None),)


def test_an_hour_whose_rows_have_expired_is_unknown_and_never_ready() -> None:
    rows = read_up_to(H + 5)
    expired = replace(
        rows,
        cuts=tuple(cut for cut in rows.cuts if cut.bucket > H),
        groups=tuple(row for row in rows.groups if row.bucket > H),
    )
    found = readiness_of(stored(expired, read_up_to(H + 5)))
    assert (found.verdict, found.reason) == (Verdict.UNKNOWN, "older than the history")
    assert readiness_of(stored(expired), H + 1).verdict is Verdict.READY
    assert readiness_of(stored(expired, None)).verdict is Verdict.NOT_READY, (
        "missing rows are reported before expired ones"
    )


def test_a_beginning_whose_past_has_expired_is_not_taken_for_a_first_start() -> None:
    """Once all rows before it have expired, the row of a recreated topic looks like that of a first start."""
    later = read_up_to(H + 6, began=H + 2)
    dataset = stored(read_up_to(H + 6), later, known_since=(H + 1) * HOUR)
    assert readiness_of(dataset).verdict is Verdict.UNKNOWN
    assert readiness_of(dataset, H + 1).verdict is Verdict.READY


# Late samples.


def test_trap_samples_that_come_after_the_hour_was_ready_are_seen_as_a_revision() -> None:
    before = stored(read_up_to(H), read_up_to(H))
    assert readiness_of(before).revision == 0
    late_once = stored(read_up_to(H + 1, late={H + 1: {H: 7}}), read_up_to(H))
    assert (
        readiness_of(late_once).verdict,
        readiness_of(late_once).revision,
        readiness_of(late_once).late_samples,
    ) == (Verdict.READY, 1, 7)
    more = stored(
        read_up_to(H + 2, late={H + 1: {H: 7, H - 1: 5}, H + 2: {H: 1}}), read_up_to(H + 1, late={H + 1: {H: 2}})
    )
    assert (readiness_of(more).revision, readiness_of(more).late_samples) == (3, 10)
    assert (readiness_of(more, H - 1).revision, readiness_of(more, H - 1).late_samples) == (1, 5)
    assert (readiness_of(more, H + 1).revision, readiness_of(more, H + 1).late_samples) == (0, 0)


def test_a_count_over_many_hours_raises_the_revision_of_each_of_them_and_of_no_hour_on_time() -> None:
    rows = read_up_to(H + 2)
    # Hours 64 to 127, as far as they were late for bucket 102.
    counted = LateSamples(64, 900, hours=64)
    rows = replace(rows, groups=tuple(replace(row, late=(counted,) * (row.bucket == H + 2)) for row in rows.groups))
    of_both_groups = stored(rows)
    for hour in (91, H, H + 1):
        found = readiness_of(of_both_groups, hour)
        assert (found.verdict, found.revision, found.late_samples) == (Verdict.READY, 2, 1_800)
    assert readiness_of(of_both_groups, H + 2).revision == 0
    assert readiness_of(of_both_groups, 63).revision == 0
    day = readiness(of_both_groups, Period(96, 24))
    assert (day.revision, day.late_samples) == (2 * 6, 1_800)


def test_late_samples_of_a_partition_that_started_later_count_too() -> None:
    found = readiness_of(stored(read_up_to(H), read_up_to(H + 3, began=H + 1, late={H + 3: {H: 4}})))
    assert (found.verdict, found.revision, found.late_samples) == (Verdict.READY, 1, 4)


def test_a_rewind_of_later_buckets_does_not_lower_a_revision_and_is_reported() -> None:
    rows = read_up_to(H + 2, late={H + 1: {H: 7}, H + 2: {H: 1}})
    found = readiness_of(stored(rewound(rows, H + 2)))
    assert (found.verdict, found.revision, found.late_samples, found.rewound_samples) == (Verdict.READY, 2, 8, 1)
    assert readiness_of(stored(rows)).rewound_samples == 0


# Days.


def test_a_day_needs_each_of_its_hours() -> None:
    day = Period(96, 24)
    found = readiness(stored(read_up_to(119), read_up_to(112)), day)
    assert (found.verdict, found.hours, found.ready_hours) == (Verdict.NOT_READY, 24, 17)
    assert (found.period, found.first_not_ready) == ("1970-01-05", "1970-01-05T17")
    assert found.behind == (BehindPartition(1, 119, 112, (0, 1), 7 * HOUR),)
    ready = readiness(stored(read_up_to(119), read_up_to(119)), day)
    assert (ready.verdict, ready.ready_hours, ready.first_not_ready) == (Verdict.READY, 24, None)


def test_a_day_has_the_revisions_and_losses_of_its_hours() -> None:
    rows = read_up_to(122, late={118: {97: 1, 98: 2}, 121: {97: 4, 119: 8, 120: 16}, 122: {95: 32}})
    found = readiness(stored(rows), Period(96, 24))
    assert (found.verdict, found.revision, found.late_samples) == (Verdict.READY, 4, 15)


def test_a_day_with_an_unknown_hour_is_unknown() -> None:
    rows = read_up_to(120, began=90)
    expired = replace(rows, cuts=tuple(cut for cut in rows.cuts if cut.bucket > 100))
    found = readiness(stored(expired), Period(96, 24))
    assert (found.verdict, found.reason, found.ready_hours) == (Verdict.UNKNOWN, "older than the history", 19)


def test_a_partition_that_began_within_the_day_counts_from_then_on() -> None:
    day = Period(96, 24)
    assert readiness(stored(read_up_to(119), read_up_to(119, began=105)), day).verdict is Verdict.READY
    found = readiness(stored(read_up_to(119), read_up_to(110, began=105)), day)
    assert (found.verdict, found.first_not_ready) == (Verdict.NOT_READY, "1970-01-05T15")


# Figures.


def test_the_newest_ready_hour_is_that_of_the_slowest_partition() -> None:
    assert newest_ready_hour(stored(read_up_to(H + 3), read_up_to(H))) == H
    assert newest_ready_hour(stored(read_up_to(H + 3), without(read_up_to(H), (H, 0)))) == H - 1
    assert newest_ready_hour(stored(read_up_to(H), None)) is None
    assert newest_ready_hour(stored()) is None
    assert newest_ready_hour(stored(read_up_to(90, began=90))) is None, "nothing is stored yet"


def test_partition_progress_has_how_far_each_partition_is_behind() -> None:
    now = (H + 3) * HOUR + 5
    progress = partition_progress(stored(read_up_to(H), None, read_up_to(H + 9)), now)
    assert progress == (
        PartitionProgress(0, H, (H + 1) * HOUR, 2 * HOUR + 5),
        PartitionProgress(1, None, None, None),
        PartitionProgress(2, H + 9, (H + 10) * HOUR, 0),
    )


# Properties.


@st.composite
def partitions(draw: st.DrawFn) -> ManifestRows | None:
    began = draw(st.integers(0, 12))
    last = draw(st.integers(began, 30))
    rows = read_up_to(last, began=began)
    if draw(st.booleans()):
        rows = rewound(rows, draw(st.integers(began, last + 1)))
    rows = closed_by_loss(rows, *draw(st.sets(st.integers(began + 1, last + 1), max_size=3)))
    holes = draw(st.sets(st.tuples(st.integers(began, last), st.integers(0, 1)), max_size=2))
    return draw(st.sampled_from([without(rows, *holes)] * 9 + [None]))


INTERVALS = st.sampled_from([15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR])


def model_ready(interval: int, hour: int, manifests: Iterable[ManifestRows | None]) -> bool:
    """The rule, bucket by bucket: each partition that had started by then has all rows up to the bucket with the last
    millisecond, or up to the first later bucket that no loss has closed.
    """
    last = ((hour + 1) * HOUR - 1) // interval
    counts = 0
    for rows in manifests:
        if rows is None:
            return False
        (began,) = [cut.bucket for cut in rows.cuts if cut.reset]
        if began >= last:
            continue
        counts += 1
        lost = {cut.bucket for cut in rows.cuts if cut.lost_to is not None}
        needed = next(bucket for bucket in range(last, 1_000) if bucket not in lost)
        stored_rows = {(row.bucket, row.group) for row in rows.groups if not row.superseded}
        if not stored_rows >= {(bucket, group) for bucket in range(began + 1, needed + 1) for group in range(GROUPS)}:
            return False
    return counts > 0


@given(manifests=st.lists(partitions(), min_size=1, max_size=3), interval=INTERVALS, hour=st.integers(0, 60))
def test_an_hour_is_ready_exactly_by_the_rule(manifests: list[ManifestRows | None], interval: int, hour: int) -> None:
    found = readiness_of(stored(*manifests, interval=interval), hour)
    assert (found.verdict is Verdict.READY) == model_ready(interval, hour, manifests)
    assert bool(found.behind) == (found.verdict is Verdict.NOT_READY)


@given(manifests=st.lists(partitions(), min_size=1, max_size=3), interval=INTERVALS)
def test_no_hour_after_the_newest_ready_one_is_ready(manifests: list[ManifestRows | None], interval: int) -> None:
    dataset = stored(*manifests, interval=interval)
    ready = [hour for hour in range(200) if model_ready(interval, hour, manifests)]
    assert newest_ready_hour(dataset) == max(ready, default=None)


def test_a_manifest_that_was_read_from_a_bucket_on_answers_as_the_whole_one() -> None:
    whole = read_up_to(H + 3, late={H + 2: {H: 3}})
    part = replace(
        whole,
        cuts=tuple(cut for cut in whole.cuts if cut.bucket >= H - 1),
        groups=tuple(row for row in whole.groups if row.bucket >= H - 1),
    )
    for hour in (H, H + 1, H + 3, H + 4):
        assert readiness_of(stored(part), hour) == readiness_of(stored(whole), hour)


def test_no_hour_is_ready_before_it_is_over_whatever_is_stored() -> None:
    """Buckets of the future may have been cut by a wrong clock."""
    early = stored(read_up_to(H + 5), present=(H + 1) * HOUR - 1)
    assert readiness(early, Period(H)).verdict is Verdict.NOT_READY
    assert readiness(early, Period(H)).reason == "it is not over yet"
    assert newest_ready_hour(early) == H - 1
    over = replace(early, present=(H + 1) * HOUR)
    assert readiness(over, Period(H)).verdict is Verdict.READY
    assert newest_ready_hour(over) == H

"""Readiness after a loss of records, or after the topic was recreated."""

from dataclasses import replace

import pytest

from strandline.recovery.periods import HOUR, Period
from strandline.recovery.readiness import (
    AcceptedLoss,
    BehindPartition,
    LossReason,
    Verdict,
    newest_ready_hour,
    readiness,
)
from strandline.store.rows import ManifestRows
from support.manifest_rows import beginning, cut, manifest, rows_of
from support.stored_partitions import H, closed_by_loss, read_up_to, readiness_of, rewound, stored, with_cut, without

pytestmark = pytest.mark.unit


def test_accepted_losses_of_the_hour_are_reported() -> None:
    rows = read_up_to(H + 1)
    found = next(cut for cut in rows.cuts if cut.bucket == H)
    lost = with_cut(rows, replace(found, lost_to=found.start + 4))
    accepted = readiness_of(stored(read_up_to(H), lost))
    assert accepted.verdict is Verdict.READY
    assert accepted.losses == (AcceptedLoss(1, 90, 94, (H,), LossReason.DELETED),)
    assert readiness_of(stored(read_up_to(H), lost), H - 1).losses == ()
    assert readiness_of(stored(lost), H + 1).losses == ()


def test_a_loss_in_the_previous_bucket_affects_an_hour_whose_first_records_are_in_its_grace() -> None:
    rows = read_up_to(H)
    found = next(cut for cut in rows.cuts if cut.bucket == H - 1)
    lost = with_cut(rows, replace(found, lost_to=found.end))
    assert readiness_of(stored(lost, grace=30_000)).losses == (AcceptedLoss(0, 80, 90, (H - 1,), LossReason.DELETED),)
    assert readiness_of(stored(lost)).losses == ()


def test_a_loss_over_several_buckets_is_reported_as_one() -> None:
    rows = read_up_to(H)
    for bucket in range(H - 2, H + 1):
        found = next(cut for cut in rows.cuts if cut.bucket == bucket)
        rows = with_cut(rows, replace(found, lost_to=min(95, found.end)))
    day = readiness(stored(rows), Period(96, 24))
    assert day.losses == (AcceptedLoss(0, 70, 95, (H - 2, H - 1, H), LossReason.DELETED),)


def test_an_hour_whose_bucket_a_loss_closed_waits_for_the_rest_of_its_time() -> None:
    dataset = stored(read_up_to(H + 3), closed_by_loss(read_up_to(H), H))
    found = readiness_of(dataset)
    assert (found.verdict, found.behind) == (Verdict.NOT_READY, (BehindPartition(1, H + 1, H, (0, 1), HOUR),))
    assert readiness_of(dataset, H - 1).verdict is Verdict.READY
    assert newest_ready_hour(dataset) == H - 1
    one_group = closed_by_loss(without(read_up_to(H + 1), (H + 1, 1)), H)
    assert readiness_of(stored(one_group)).behind == (BehindPartition(0, H + 1, H, (1,), HOUR),)
    assert readiness_of(stored(closed_by_loss(read_up_to(H + 1), H))).verdict is Verdict.READY


def test_an_hour_in_which_the_log_lost_the_position_of_its_shard_waits_for_the_rest_of_its_time() -> None:
    """The shard has stored what it had read, before anyone could accept the loss."""

    def closed(rows: ManifestRows) -> ManifestRows:
        return replace(rows, cuts=tuple(replace(cut, closed_early=cut.bucket == H) for cut in rows.cuts))

    assert readiness_of(stored(closed(read_up_to(H)))).behind == (BehindPartition(0, H + 1, H, (0, 1), HOUR),)
    assert readiness_of(stored(closed(read_up_to(H + 1)))).verdict is Verdict.READY


def test_after_several_losses_in_a_row_an_hour_waits_for_a_bucket_that_none_has_closed() -> None:
    rows = closed_by_loss(read_up_to(H + 1), H, H + 1)
    assert readiness_of(stored(rows)).behind == (BehindPartition(0, H + 2, H + 1, (0, 1), HOUR),)
    assert newest_ready_hour(stored(rows)) == H - 1
    assert newest_ready_hour(stored(closed_by_loss(read_up_to(H + 2), H, H + 1))) == H + 2


def remade() -> ManifestRows:
    """Read up to bucket 99, of which group 1 was not stored; then the topic was recreated, in bucket 102."""
    old = without(read_up_to(99, began=96), (99, 1))
    new = [beginning(102, 0), cut(103, 0, 5)]
    return manifest([*old.cuts, *new], [*old.groups, *rows_of(103, (0, 1))])


def test_unstored_records_of_a_recreated_topic_are_a_loss_and_are_not_waited_for() -> None:
    dataset = stored(remade())
    assert readiness_of(dataset, 98).losses == ()
    for hour in range(99, 103):
        found = readiness_of(dataset, hour)
        assert found.verdict is Verdict.READY, hour
        assert found.losses == (AcceptedLoss(0, 20, None, (hour,), LossReason.TOPIC_RECREATED),)
    assert (readiness_of(dataset, 103).verdict, readiness_of(dataset, 103).losses) == (Verdict.READY, ())
    assert readiness_of(dataset, 104).verdict is Verdict.NOT_READY
    assert readiness_of(dataset, 96).verdict is Verdict.UNKNOWN


def test_an_hour_in_which_a_topic_was_recreated_waits_for_its_records_in_the_new_topic() -> None:
    begun = replace(remade(), groups=tuple(row for row in remade().groups if row.bucket < 103))
    assert readiness_of(stored(begun), 102).behind == (BehindPartition(0, 103, 102, (0, 1), HOUR),)
    assert readiness_of(stored(begun), 101).verdict is Verdict.READY
    assert newest_ready_hour(stored(begun)) == 101


def test_rows_superseded_when_the_topic_was_recreated_are_lost_too() -> None:
    found = readiness_of(stored(rewound(remade(), 98)), 98)
    assert found.losses == (AcceptedLoss(0, 10, None, (98,), LossReason.TOPIC_RECREATED),)

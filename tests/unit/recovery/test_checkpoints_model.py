"""Compares the progress of a shard with that of simple models."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from strandline.recovery.checkpoints import ManifestInconsistent, check_contiguous, progress
from strandline.store.rows import CutRow, GroupRow
from support.manifest_rows import SHARD, beginning, cut, known, manifest, row

pytestmark = pytest.mark.unit


def joined(bucket: int, offset: int, lengths: Iterable[int]) -> list[CutRow]:
    cuts = []
    for number, length in enumerate(lengths):
        cuts.append(cut(bucket + number, offset, offset + length))
        offset += length
    return cuts


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.data())
def test_a_row_that_is_missing_in_the_middle_or_moved_is_always_detected(
    lengths: list[int], data: st.DataObject
) -> None:
    cuts = joined(10, 100, lengths)
    check_contiguous(cuts, SHARD)
    position = data.draw(st.integers(0, len(cuts) - 1))
    by = data.draw(st.sampled_from([-1, 1]))
    damaged = {
        "end": [*cuts[:position], replace(cuts[position], end=cuts[position].end + by), *cuts[position + 1 :]],
        "start": [*cuts[:position], replace(cuts[position], start=cuts[position].start + by), *cuts[position + 1 :]],
        "missing": [*cuts[:position], *cuts[position + 1 :]],
    }
    # The outermost ends have no neighbour, and an expired row is not missed.
    sound = {
        "end": position == len(cuts) - 1 and cuts[position].end + by >= cuts[position].start,
        "start": position == 0 and cuts[position].start + by <= cuts[position].end,
        "missing": position in (0, len(cuts) - 1),
    }
    for what, rows in damaged.items():
        if sound[what]:
            check_contiguous(rows, SHARD)
        else:
            with pytest.raises(ManifestInconsistent):
                check_contiguous(rows, SHARD)


@given(
    groups=st.integers(1, 4),
    lengths=st.lists(st.integers(0, 5), max_size=8),
    begins=st.booleans(),
    data=st.data(),
)
def test_any_rows_give_the_progress_of_a_simple_model(
    *, groups: int, lengths: list[int], begins: bool, data: st.DataObject
) -> None:
    """The model: a group has a bucket if it has a row that is not superseded. Its checkpoint is the start of the first
    bucket that it lacks, or else the end of the last bucket.
    """
    cuts = joined(10, 100, lengths)
    if begins:
        cuts.insert(0, beginning(9, 100))
    bucket_and_group = st.tuples(st.integers(9, 10 + len(lengths)), st.integers(0, groups))
    written = data.draw(st.dictionaries(bucket_and_group, st.booleans()))
    rows = [row(bucket, group, superseded=superseded) for (bucket, group), superseded in written.items()]
    found = progress(manifest(cuts, rows), groups, SHARD)
    if not cuts:
        assert found is None
        return
    assert found is not None
    buckets = [cut for cut in cuts if not cut.reset]
    for group in range(groups):
        holes = [cut for cut in buckets if written.get((cut.bucket, group), True)]
        assert found.checkpoints[group] == (holes[0].start if holes else cuts[-1].end)
        assert found.stored_up_to[group] == (holes[0].bucket - 1 if holes else cuts[-1].bucket)
        assert {bucket for bucket, missing in found.missing.items() if group in missing} == {
            cut.bucket for cut in holes
        }
    assert found.lowest == min(found.checkpoints)
    assert set(found.missing) == {cut.bucket for cut in buckets}


@given(groups=st.integers(1, 4), lengths=st.lists(st.integers(0, 5), min_size=1, max_size=8), data=st.data())
def test_rows_that_expire_oldest_first_change_nothing_while_all_groups_have_them(
    groups: int, lengths: list[int], data: st.DataObject
) -> None:
    cuts = [beginning(9, 100), *joined(10, 100, lengths)]
    upto = [data.draw(st.integers(9, cuts[-1].bucket)) for _ in range(groups)]
    rows = [row(cut.bucket, group) for cut in cuts[1:] for group in range(groups) if cut.bucket <= upto[group]]
    before = known(cuts, rows, groups=groups)
    for expired in range(1, min(upto) - 9 + 1):
        # A group's row was written after its cut, and expires after it.
        for rows_left in (rows, [kept for kept in rows if kept.bucket >= cuts[expired].bucket]):
            after = known(cuts[expired:], rows_left, groups=groups)
            assert (after.checkpoints, after.stored_up_to) == (before.checkpoints, before.stored_up_to)
            assert {bucket for bucket, missing in after.missing.items() if missing} == {
                bucket for bucket, missing in before.missing.items() if missing
            }


# A shard's life, beside a model that knows of each record and group whether it is stored.


@dataclass(slots=True)
class _Model:
    """What is stored, record by record. It is independent of buckets."""

    begins: int
    ends: int
    stored: set[tuple[int, int]] = field(default_factory=set)

    def first_not_stored(self, group: int) -> int:
        return next(
            (offset for offset in range(self.begins, self.ends) if (offset, group) not in self.stored), self.ends
        )


GROUPS = 3
group_numbers = st.integers(0, GROUPS - 1)


class ShardLife(RuleBasedStateMachine):
    """Cuts, group rows in bucket order, rewinds, resets and expiry, as designed."""

    @initialize(bucket=st.integers(0, 50), offset=st.integers(0, 50))
    def first_start(self, bucket: int, offset: int) -> None:
        self.cuts = {bucket: beginning(bucket, offset)}
        self.rows: dict[tuple[int, int], GroupRow] = {}
        self.model = _Model(offset, offset)

    def _newest(self) -> CutRow:
        return self.cuts[max(self.cuts)]

    def _stored_up_to(self, group: int) -> int:
        """The newest bucket that the group has flushed; it flushes the next one."""
        written = [
            bucket
            for (bucket, group_of_row), kept in self.rows.items()
            if group_of_row == group and not kept.superseded
        ]
        return max([*written, self._begins_with()])

    def _begins_with(self) -> int:
        resets = [bucket for bucket, kept in self.cuts.items() if kept.reset]
        return max(resets) if resets else min(self.cuts) - 1

    @rule(length=st.integers(0, 4))
    def cut(self, length: int) -> None:
        newest = self._newest()
        bucket, end = newest.bucket + 1, newest.end + length
        self.cuts[bucket] = cut(bucket, newest.end, end)
        self.model.ends = end

    @rule(group=group_numbers, buckets=st.integers(1, 3))
    def flush(self, group: int, buckets: int) -> None:
        for _ in range(buckets):
            bucket = self._stored_up_to(group) + 1
            if bucket not in self.cuts:
                return
            self.rows[bucket, group] = row(bucket, group)
            offsets = range(self.cuts[bucket].start, self.cuts[bucket].end)
            self.model.stored.update((offset, group) for offset in offsets)

    @rule(back=st.integers(1, 4))
    def rewind(self, back: int) -> None:
        for bucket in sorted(self.cuts, reverse=True)[:back]:
            if self.cuts[bucket].reset:
                return
            for group in range(GROUPS):
                if (bucket, group) in self.rows:
                    self.rows[bucket, group] = row(bucket, group, superseded=True)
            offsets = range(self.cuts[bucket].start, self.cuts[bucket].end)
            self.model.stored.difference_update((offset, group) for offset in offsets for group in range(GROUPS))

    @rule(offset=st.integers(0, 50), later=st.integers(1, 9))
    def topic_recreated(self, offset: int, later: int) -> None:
        bucket = self._newest().bucket + later
        self.cuts[bucket] = beginning(bucket, offset)
        self.model = _Model(offset, offset)

    @precondition(lambda self: len(self.cuts) > 1)
    @rule()
    def expire(self) -> None:
        """The oldest cut expires if every group has its row, since cuts expire before their rows."""
        oldest = min(self.cuts)
        older_life = oldest < self._begins_with()
        if not older_life and oldest > min(self._stored_up_to(group) for group in range(GROUPS)):
            return
        if not older_life:
            self.model.begins = self.cuts[oldest].end
        del self.cuts[oldest]

    @invariant()
    def the_checkpoints_are_where_the_first_record_is_not_stored(self) -> None:
        found = known(self.cuts.values(), self.rows.values(), groups=GROUPS)
        for group in range(GROUPS):
            assert found.checkpoints[group] == self.model.first_not_stored(group)
            assert found.stored_up_to[group] == self._stored_up_to(group)
            assert all(
                group in found.missing[cut.bucket] for cut in found.cuts if cut.bucket > self._stored_up_to(group)
            )
        assert found.lowest == min(self.model.first_not_stored(group) for group in range(GROUPS))


TestShardLife = ShardLife.TestCase

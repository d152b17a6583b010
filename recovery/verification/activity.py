"""Compares the keys that were active in a bucket with the series in its segments, one group of one bucket at a time.

A key's group follows from its metric. Each group can therefore be checked separately, and one whose row is missing or
superseded does not affect the others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s, Rows, U32s
from strandline.index.bucket_codec import StoredBucket
from strandline.index.key_table import MISSING
from strandline.recovery.verification.findings import FindingKind, Findings, NoteKind, counted, with_first
from strandline.recovery.verification.group_segments import SeriesTimes
from strandline.recovery.verification.known_keys import KnownKeys


@dataclass(frozen=True, slots=True)
class Activity:
    """The active keys of a bucket whose ids are known: rows in `KnownKeys.ids`, the keys' numbers, their groups, and
    their latest sample times as of the cut. `is_lossy`: part of the bucket's records was or may have been lost, and
    groups may have been stored before or after that. `is_salvaged`: part of its index bucket was lost. `has_starts`: no
    record was lost that could have had an earlier start.
    """

    bucket: int
    id_rows: Rows
    numbers: U32s
    groups: npt.NDArray[np.uint64]
    last: I64s
    is_lossy: bool
    is_salvaged: bool = False
    has_starts: bool = True

    @staticmethod
    def of(
        stored: StoredBucket,
        known: KnownKeys,
        groups: int,
        *,
        is_lossy: bool,
        is_salvaged: bool = False,
        has_starts: bool = True,
    ) -> "Activity":
        """The activity in a stored bucket."""
        rows = known.rows_of(stored.active_ids)
        there = rows >= 0
        rows = rows[there]
        numbers = known.ids.number[rows]
        of_groups = known.metric[numbers] % np.uint64(groups)
        return Activity(
            stored.bucket,
            rows,
            numbers,
            of_groups,
            stored.last[there],
            is_lossy,
            is_salvaged=is_salvaged,
            has_starts=has_starts,
        )


@dataclass(frozen=True, slots=True)
class ActivityCheck:
    """Compares groups. `name` describes a key, given the bucket of a record and the part id in it."""

    known: KnownKeys
    found: Findings
    name: Callable[[int, int], str]

    def compare(self, activity: Activity, group: int, series: SeriesTimes) -> None:
        """Compare the active keys of a group with the series in its segments."""
        numbers = self.known.find(series.key_low, series.key_high)
        # One more entry, for unknown series.
        position_of = np.full(len(self.known) + 1, -1, dtype=np.int64)
        position_of[np.where(numbers == MISSING, len(self.known), numbers)] = np.arange(len(series))
        of_group = np.flatnonzero(activity.groups == group)
        positions = position_of[activity.numbers[of_group]]
        self._without_samples(activity, group, of_group[positions < 0])
        is_active = np.zeros(len(series), dtype=np.bool_)
        is_active[positions[positions >= 0]] = True
        self._not_active(activity, group, numbers[~is_active])
        if series.has_times and not activity.is_lossy:
            self._times(activity, group, of_group[positions >= 0], positions[positions >= 0], series)

    def _without_samples(self, activity: Activity, group: int, rows: Rows) -> None:
        if len(rows) == 0:
            return
        if activity.is_lossy:
            self.found.note(
                NoteKind.NOT_COMPARED,
                f"{counted(len(rows), 'key')} of group {group} are active without samples: their records were lost",
                bucket=activity.bucket,
                group=group,
            )
            return
        self.found.add(
            FindingKind.ACTIVE_WITHOUT_SAMPLES,
            with_first(
                f"keys of group {group} that are active but have no samples in its segments",
                len(rows),
                self._name_of(int(activity.id_rows[rows[0]])),
            ),
            bucket=activity.bucket,
            group=group,
        )

    def _not_active(self, activity: Activity, group: int, numbers: U32s) -> None:
        """Series with stored samples whose keys were not active. If the index did not have the key then, the series
        limit has refused it.
        """
        known = numbers[numbers != MISSING]
        wrong = known[self.known.present_in(activity.bucket, known)]
        refused = len(numbers) - len(wrong)
        if len(wrong) and activity.is_lossy:
            self.found.note(
                NoteKind.NOT_COMPARED,
                f"{counted(len(wrong), 'key')} of group {group} have samples but are not active: the records were lost"
                " before they were added to the index",
                bucket=activity.bucket,
                group=group,
            )
        elif len(wrong) and activity.is_salvaged:
            self.found.note(
                NoteKind.INDEX_LOSS_ACCEPTED,
                f"{counted(len(wrong), 'key')} of group {group} have samples in its segments but are not active: that"
                " part of the index bucket was lost",
                bucket=activity.bucket,
                group=group,
            )
        elif len(wrong):
            self.found.add(
                FindingKind.SAMPLES_NOT_ACTIVE,
                with_first(
                    f"keys of group {group} that have samples in its segments but are not active",
                    len(wrong),
                    self._name_of(self.known.id_of(int(wrong[0]))),
                ),
                bucket=activity.bucket,
                group=group,
            )
        if refused:
            self.found.note(
                NoteKind.REFUSED_SERIES,
                f"samples of {counted(refused, 'series', 'series')} of group {group} are stored, but the index had no"
                " key for them: the series limit refused them, or their records have expired or were lost",
                bucket=activity.bucket,
                group=group,
            )

    def _times(self, activity: Activity, group: int, rows: Rows, positions: Rows, series: SeriesTimes) -> None:
        id_rows = activity.id_rows[rows]
        for what, wrong in (
            (
                "a later sample than their recorded end",
                series.greatest[positions] > activity.last[rows],
            ),
            (
                "an earlier sample than their recorded start",
                (series.least[positions] < self.known.ids.start[id_rows]) & activity.has_starts,
            ),
        ):
            number = int(np.count_nonzero(wrong))
            if number:
                self.found.add(
                    FindingKind.ACTIVE_TIMES,
                    with_first(
                        f"keys of group {group} that have {what}",
                        number,
                        self._name_of(int(id_rows[np.argmax(wrong)])),
                    ),
                    bucket=activity.bucket,
                    group=group,
                )

    def _name_of(self, id_row: int) -> str:
        return self.name(int(self.known.ids.bucket[id_row]), int(self.known.ids.part_id[id_row]))

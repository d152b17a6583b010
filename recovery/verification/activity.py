"""Who was active in a bucket beside whose samples lie in its segments: one group of one bucket at a time.

Which group a key belongs to follows from its metric. So each group can be judged by itself, and one whose row is
missing or superseded says nothing about the others.
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
    """Who was active in a bucket, of those ids that are somebody's: rows of the known ids, the keys' numbers, their
    groups, and their greatest sample times as of the cut. `is_lossy` says that a part of its records was lost, or may
    have been, and groups may have been stored before that or after. `is_salvaged` says that a part of its index bucket
    was lost, and `has_starts` that no record was lost that could have told of an earlier start.
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
        """What a stored bucket says."""
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
    """Compares groups. `name` tells a person of a key, by the bucket of a record and the part id in it."""

    known: KnownKeys
    found: Findings
    name: Callable[[int, int], str]

    def compare(self, activity: Activity, group: int, series: SeriesTimes) -> None:
        """Compare the active keys of a group with the series in its segments."""
        numbers = self.known.find(series.key_low, series.key_high)
        # One more, for the series that nobody knows.
        place_of = np.full(len(self.known) + 1, -1, dtype=np.int64)
        place_of[np.where(numbers == MISSING, len(self.known), numbers)] = np.arange(len(series))
        ours = np.flatnonzero(activity.groups == group)
        places = place_of[activity.numbers[ours]]
        self._without_samples(activity, group, ours[places < 0])
        is_active = np.zeros(len(series), dtype=np.bool_)
        is_active[places[places >= 0]] = True
        self._not_active(activity, group, numbers[~is_active])
        if series.has_times and not activity.is_lossy:
            self._times(activity, group, ours[places >= 0], places[places >= 0], series)

    def _without_samples(self, activity: Activity, group: int, rows: Rows) -> None:
        if len(rows) == 0:
            return
        if activity.is_lossy:
            self.found.note(
                NoteKind.NOT_COMPARED,
                f"samples were lost of {counted(len(rows), 'key')} of group {group} that count as active",
                bucket=activity.bucket,
                group=group,
            )
            return
        self.found.add(
            FindingKind.ACTIVE_WITHOUT_SAMPLES,
            with_first(
                f"keys of group {group} that count as active and have no samples in its segments",
                len(rows),
                self._name_of(int(activity.id_rows[rows[0]])),
            ),
            bucket=activity.bucket,
            group=group,
        )

    def _not_active(self, activity: Activity, group: int, numbers: U32s) -> None:
        """Series whose samples are stored though their keys were not active: refused by the series limit, if the index
        did not have the key then.
        """
        known = numbers[numbers != MISSING]
        wrong = known[self.known.present_in(activity.bucket, known)]
        refused = len(numbers) - len(wrong)
        if len(wrong) and activity.is_lossy:
            self.found.note(
                NoteKind.NOT_COMPARED,
                f"the index was not told of samples of {counted(len(wrong), 'key')} of group {group}: the records were"
                " lost",
                bucket=activity.bucket,
                group=group,
            )
        elif len(wrong) and activity.is_salvaged:
            self.found.note(
                NoteKind.INDEX_LOSS_ACCEPTED,
                f"{counted(len(wrong), 'key')} of group {group} have samples in its segments and do not count as"
                " active: that part of the index bucket was lost",
                bucket=activity.bucket,
                group=group,
            )
        elif len(wrong):
            self.found.add(
                FindingKind.SAMPLES_NOT_ACTIVE,
                with_first(
                    f"keys of group {group} that have samples in its segments and do not count as active",
                    len(wrong),
                    self._name_of(self.known.id_of(int(wrong[0]))),
                ),
                bucket=activity.bucket,
                group=group,
            )
        if refused:
            self.found.note(
                NoteKind.REFUSED_SERIES,
                f"samples of {counted(refused, 'series', 'series')} of group {group} are stored that the index does not"
                " know from then: the series limit refused them, or their records have expired or were lost",
                bucket=activity.bucket,
                group=group,
            )

    def _times(self, activity: Activity, group: int, rows: Rows, places: Rows, series: SeriesTimes) -> None:
        id_rows = activity.id_rows[rows]
        for what, wrong in (
            (
                "a later sample than the greatest time that was kept of them",
                series.greatest[places] > activity.last[rows],
            ),
            (
                "an earlier sample than their start",
                (series.least[places] < self.known.ids.start[id_rows]) & activity.has_starts,
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

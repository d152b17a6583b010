"""Manifests of exported days, and what an export does with a day."""

import pytest

from strandline.jobs.exporting.day_manifest import (
    ConflictingExport,
    DayAction,
    DayManifest,
    ExportDay,
    ManifestUnreadable,
    choose_action,
    days_between,
    file_name,
    job_of,
)
from strandline.jobs.outcome import FileWritten
from strandline.jobs.reading.pins import RowId

pytestmark = pytest.mark.unit

DAY = 86_400_000
OF = ExportDay("metrics", "up", 20_000 * DAY, 20_001 * DAY)
ROWS = (RowId(0, 1, 2, "aa"), RowId(0, 2, 2, "bb"))
FORMER = DayManifest(OF, 3, True, "2026-1", (FileWritten("a.parquet", 1, 2, "cc"),), ROWS)


def test_a_manifest_is_decoded_as_it_was_encoded() -> None:
    assert DayManifest.from_json(FORMER.to_json(), "it") == FORMER
    assert FORMER.path == "day=2024-10-04/_manifest.json"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version":1}', b'{"version":2}'])
def test_any_other_content_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(ManifestUnreadable, match=r"out/_manifest\.json"):
        DayManifest.from_json(content, "out/_manifest.json")


def test_a_day_is_exported_again_from_other_rows_or_for_a_longer_time() -> None:
    other = RowId(0, 2, 2, "b2")
    assert choose_action(None, OF, ROWS, ()) is DayAction.EXPORT
    assert choose_action(FORMER, OF, ROWS[::-1], ()) is DayAction.UNCHANGED
    assert choose_action(FORMER, OF, (ROWS[0], other), ()) is DayAction.EXPORT
    assert choose_action(FORMER, OF, ROWS[:1], ()) is DayAction.EXPORT
    part = DayManifest(ExportDay("metrics", "up", OF.start + 1, OF.end), 1, True, "j", (), ROWS)
    assert choose_action(part, OF, ROWS, ()) is DayAction.EXPORT


def test_a_day_is_kept_once_a_row_it_was_made_from_has_expired() -> None:
    assert choose_action(FORMER, OF, (*ROWS, RowId(0, 3, 2, "cc")), ROWS[:1]) is DayAction.EXPIRED
    assert choose_action(FORMER, OF, ROWS, ROWS[:1]) is DayAction.UNCHANGED


@pytest.mark.parametrize(
    "of",
    [
        ExportDay("metrics", "down", OF.start, OF.end),
        ExportDay("others", "up", OF.start, OF.end),
        ExportDay("metrics", "up", OF.start + 1, OF.end),
        ExportDay("metrics", "up", OF.start, OF.end - 1),
    ],
)
def test_another_export_is_not_overwritten(of: ExportDay) -> None:
    with pytest.raises(ConflictingExport):
        choose_action(FORMER, of, ROWS, ())


def test_days_are_those_of_utc_and_the_first_and_the_last_may_be_cut() -> None:
    assert days_between(DAY, 2 * DAY) == [(DAY, 2 * DAY)]
    assert days_between(DAY - 1, 2 * DAY + 1) == [(DAY - 1, DAY), (DAY, 2 * DAY), (2 * DAY, 2 * DAY + 1)]


def test_the_name_of_a_file_contains_its_job_and_sorts_like_its_part() -> None:
    job = "20261118T101500Z-a1b2c3"
    assert job_of(file_name(job, 12, 3)) == job
    assert [job_of(name) for name in ("_manifest.json", "mine.parquet", "x.csv")] == ["", "", ""]
    assert file_name(job, 9, 30) < file_name(job, 10, 1)

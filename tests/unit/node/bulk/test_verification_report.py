"""The report of `strandline job verify`, as text and as an exit code."""

import pytest

from strandline.errors import ExitCode
from strandline.jobs.verifying.imports import Difference, ImportVerified
from strandline.jobs.verifying.sends import PartMessages, SendVerified
from strandline.node.bulk.verifying import JobVerified
from strandline.node.output import Table

pytestmark = pytest.mark.unit

TIME = 1_700_000_000_000


def lines_and_rows(report: JobVerified) -> tuple[list[str], list[tuple[str, ...]]]:
    blocks = report.blocks()
    rows = [row for block in blocks if isinstance(block, Table) for row in block.rows]
    return [block for block in blocks if isinstance(block, str)], rows


def test_an_import_without_differences_is_reported_as_imported() -> None:
    verified = ImportVerified(parts=2, series=3, samples=12_000)
    report = JobVerified("job", "import", 2, 2, sound=True, imported=verified)
    assert report.exit_code is ExitCode.OK
    lines, rows = lines_and_rows(report)
    assert lines == ["All compared samples are as they were imported."]
    assert rows == [("2", "3", "12,000", "0", "0", "0", "0")]


def test_missing_and_different_samples_are_listed_with_both_values() -> None:
    examples = (Difference('up{job="a"}', TIME, 1.5, None), Difference('up{job="b"}', TIME, 2.0, 3.0))
    verified = ImportVerified(parts=2, series=2, samples=10, missing=1, different=1, examples=examples)
    report = JobVerified("job", "import", 4, 2, sound=False, imported=verified)
    assert report.exit_code is ExitCode.VERIFY_FAILED
    lines, rows = lines_and_rows(report)
    assert lines[0] == "2 of 4 parts are done; only these were compared."
    assert "written again" in lines[-1]
    assert [(row[0], *row[2:]) for row in rows[1:]] == [
        ('up{job="a"}', "1.5", "missing"),
        ('up{job="b"}', "2.0", "3.0"),
    ]
    assert all("2023-11-14" in row[1] for row in rows[1:])


def test_samples_that_can_not_be_read_yet_are_counted_with_the_reason() -> None:
    verified = ImportVerified(parts=1, series=1, samples=4, unreadable=6, reason="shard 0 is 30 s behind")
    report = JobVerified("job", "import", 1, 1, sound=True, imported=verified)
    assert report.exit_code is ExitCode.NOT_READY
    assert "6 samples can't be read yet: shard 0 is 30 s behind" in lines_and_rows(report)[0]


def test_parts_with_another_number_of_messages_are_listed() -> None:
    differing = (PartMessages(3, sent=1_000, found=999),)
    report = JobVerified("job", "send", 4, 4, sound=False, sent=SendVerified(4, 4_000, 3_999, differing))
    assert report.exit_code is ExitCode.VERIFY_FAILED
    lines, rows = lines_and_rows(report)
    assert lines[0] == "4,000 messages were sent by 4 parts, and the topic has 3,999."
    assert rows == [("3", "1,000", "999")]
    right = JobVerified("job", "send", 4, 4, sound=True, sent=SendVerified(4, 4_000, 4_000, ()))
    assert lines_and_rows(right) == (["4,000 messages were sent by 4 parts, and the topic has 4,000."], [])

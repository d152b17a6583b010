"""The report of an import: sums over parts, and line numbers over the parts of a file."""

import pytest

from strandline.jobs.bad_records import BadRecord, BadRecords
from strandline.jobs.counts import Counts
from strandline.jobs.importing.text_parts import PlannedFile, TextPart
from strandline.jobs.outcome import PartOutcome, SamplesByTime
from strandline.jobs.report import JobReport, job_report
from strandline.jobs.sources.files import SourceFile
from strandline.recovery.periods import HOUR
from strandline.store.bulk_jobs import BulkPart

pytestmark = pytest.mark.unit


def part(number: int, uri: str, *bad_lines: int, done: bool = True, header_lines: int = 0) -> BulkPart:
    planned = PlannedFile(SourceFile(uri, 100, 0, ""), 0, header_lines=header_lines)
    source = TextPart(planned, number * 10, number * 10 + 10)
    examples = tuple(BadRecord(line, line, "wrong") for line in bad_lines)
    outcome = PartOutcome(
        Counts(records=10, samples=9, bad=len(bad_lines)),
        lines=10,
        series=5,
        times=SamplesByTime(HOUR, {0: 9}),
        bad=BadRecords({"wrong": len(bad_lines)} if bad_lines else {}, examples),
        nulls=number,
    )
    return BulkPart("metrics", "job", number, source.to_json(), 1, outcome=outcome.to_json() if done else "")


def test_counts_are_sums_and_lines_go_on_through_the_parts_of_a_file() -> None:
    report = job_report([part(0, "a", 3), part(1, "a", 1, 2), part(2, "b", 4)])
    assert (report.counts.records, report.counts.samples, report.counts.bad) == (30, 27, 4)
    assert (report.files, report.parts_done, report.bad) == (2, 3, {"wrong": 4})
    assert [(line.uri, line.record.line) for line in report.bad_lines] == [("a", 3), ("a", 11), ("a", 12), ("b", 4)]
    assert report.times.counts == {0: 27}
    assert report.nulls == 3
    assert report.series == 15
    assert JobReport.from_json(report.to_json()) == report


def test_a_header_counts_as_a_line_of_its_file() -> None:
    report = job_report([part(0, "a", 3, header_lines=1), part(1, "a", 1, header_lines=1), part(2, "b", 4)])
    assert [(line.uri, line.record.line) for line in report.bad_lines] == [("a", 4), ("a", 12), ("b", 4)]


def test_lines_after_a_part_that_is_not_done_are_unknown() -> None:
    report = job_report([part(0, "a", 1), part(1, "a", done=False), part(2, "a", 5), part(3, "b", 2)])
    assert report.parts_done == 3
    assert [(line.uri, line.record.line) for line in report.bad_lines] == [("a", 1), ("a", 0), ("b", 2)]

"""`strandline job status` and `job list` for exports and sends."""

import pytest

from strandline.jobs.counts import Counts
from strandline.jobs.exporting.export_kind import EXPORT
from strandline.jobs.exporting.spec import ExportPart
from strandline.jobs.importing.import_kind import IMPORT
from strandline.jobs.outcome import FileWritten, PartOutcome, SamplesByTime
from strandline.jobs.sending.send_kind import SEND
from strandline.jobs.sending.spec import equal_ranges
from strandline.node.bulk.reports import JobList, JobStatus
from strandline.node.output import Table
from strandline.recovery.periods import HOUR
from strandline.store.bulk_jobs import BulkJob, BulkPart

pytestmark = pytest.mark.unit


def test_an_export_reports_files_and_no_landed_samples() -> None:
    counts = Counts(records=12, samples=10, sent=1, bytes=2048)
    outcome = PartOutcome(counts, files=(FileWritten("a.parquet", 10, 2048, "ab"),))
    assert PartOutcome.from_json(outcome.to_json()) == outcome
    source = ExportPart("out/day=2026-11-15", "2026-11-15", 0, 1, 10).to_json()
    part = BulkPart("metrics", "1", 0, source, 1, outcome=outcome.to_json())
    status = JobStatus.of(BulkJob("metrics", "1", EXPORT, "", "", 1, 1, 0), [part])
    (table,) = (block for block in status.blocks() if isinstance(block, Table))
    assert table.columns == ("parts done", "samples read", "samples exported", "bad records", "written")
    assert table.rows[0][1:3] == ("12", "10")
    assert table.rows[0][-1].startswith("1 files, ")


def test_a_job_that_sends_series_has_messages_and_no_samples() -> None:
    outcome = PartOutcome(Counts(records=12, bad=2, sent=10, bytes=2048)).to_json()
    parts = [BulkPart("metrics", "1", 0, one.to_json("up"), 1, outcome=outcome) for one in equal_ranges(1)]
    status = JobStatus.of(BulkJob("metrics", "1", SEND, '{"rate":2500.0}', "", 1, 1, 0), parts)
    assert (status.landed, status.unit, status.rate) == (10, "messages", 2500)
    assert "Its workers together land at most 2,500 messages per second." in status.blocks()
    (table,) = (block for block in status.blocks() if isinstance(block, Table))
    assert table.columns[1:4] == ("series read", "messages sent", "bad records")
    assert table.rows[0][1:4] == ("12", "10", "2")
    (listed,) = JobList("metrics", (status,)).blocks()
    assert isinstance(listed, Table)
    assert dict(zip(listed.columns, listed.rows[0], strict=True))["landed"] == "10 messages"


def test_an_import_reports_its_maximum_number_of_series() -> None:
    outcome = PartOutcome(Counts(records=12, samples=10), series=7, times=SamplesByTime(HOUR, {0: 10}))
    parts = [BulkPart("metrics", "1", at, '{"uri": "a"}', 1, outcome=outcome.to_json()) for at in range(2)]
    status = JobStatus.of(BulkJob("metrics", "1", IMPORT, "{}", "", 2, 1, 0), parts)
    assert status.series == 14
    assert any("At most 14 series" in str(block) for block in status.blocks())

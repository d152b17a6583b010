"""What `strandline job status` shows of an export."""

import pytest

from strandline.jobs.counts import Counts
from strandline.jobs.exporting.export_kind import EXPORT
from strandline.jobs.exporting.spec import ExportPart
from strandline.jobs.outcome import FileWritten, PartOutcome
from strandline.node.bulk.reports import JobStatus
from strandline.node.output import Table
from strandline.store.bulk_jobs import BulkJob, BulkPart

pytestmark = pytest.mark.unit


def test_an_export_has_written_files_and_landed_nothing() -> None:
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

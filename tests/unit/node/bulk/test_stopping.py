"""`strandline job cancel` of a job without a worker."""

import json
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.node.bulk.stopping import stop_job
from strandline.node.settings.sections import Settings
from strandline.store.bulk_jobs import BulkJobState, Wanted
from strandline.store.jobs import JobState
from support.full_figures import NOW, bulk_job, job_parts
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit


def test_a_paused_job_that_is_cancelled_has_its_event_at_once(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    board = BulkBoard(MemoryStore(MemoryServer(clock)), "metrics", clock)
    job = bulk_job("a", BulkJobState.PAUSED)
    board.add(job, job_parts(job, [JobState.DONE, *[JobState.PENDING] * 6]))
    settings = Settings.model_validate({"jobs": {"events_folder": str(tmp_path)}})
    assert stop_job(settings, board, "a", Wanted.CANCELLED, clock).state is BulkJobState.CANCELLED
    (file,) = tmp_path.iterdir()
    event = json.loads(file.read_bytes())
    assert (file.name, event["state"], event["reason"]) == ("a.cancelled.json", "cancelled", "cancelled by an operator")

"""Jobs over HTTP: permissions and answers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.counts import Counts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.running import FencePart
from strandline.jobs.transitions import announced, complete
from strandline.jobs.worker import BulkWorker, RunningPart
from strandline.node.bulk.reports import JobStatus
from strandline.node.job_watch.routes import jobs_routes
from strandline.node.job_watch.watch import JobsWatch
from strandline.node.json_values import json_value
from strandline.node.settings.http_sections import HttpSettings
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState
from strandline.store.protocol import StoreUnavailable
from support.full_figures import NOW, bulk_job, job_parts
from support.http_servers import Reply, in_loop, secret_file, served
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

READ, ADMIN = "a-token-for-reading-0123", "a-token-for-admins-01234"


class FencingKind:
    """A kind of job whose parts only need to be fenced."""

    def __init__(self) -> None:
        self.fenced: list[int] = []

    def run(self, running: RunningPart) -> PartOutcome:
        raise AssertionError(running)

    @contextmanager
    def fencing(self, job: BulkJob) -> Iterator[FencePart]:
        def fence(part: BulkPart) -> None:
            assert job.job == part.job
            self.fenced.append(part.part)

        yield fence

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        assert len(parts) == job.parts
        return complete(job, "", NOW)

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        assert len(parts) == job.parts
        return announced(job, "{}")


class ServedJobs:
    """The routes over a store in memory."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(NOW)
        self.board = BulkBoard(MemoryStore(MemoryServer(self.clock)), "metrics", self.clock)
        self.unavailable = False
        self.http = HttpSettings(
            read_token_file=secret_file(folder / "read", READ), admin_token_file=secret_file(folder / "admin", ADMIN)
        )

    def add(self, job: BulkJob, states: Sequence[JobState] = (), counts: Counts | None = None) -> None:
        self.board.add(job, job_parts(job, [*states, *[JobState.PENDING] * (job.parts - len(states))], counts))

    @contextmanager
    def opener(self) -> Iterator[BulkBoard]:
        if self.unavailable:
            raise StoreUnavailable("connection refused")
        yield self.board

    def send(self, path: str, *, method: str = "GET", token: str = READ) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        async def run() -> Reply:
            watch = JobsWatch(self.opener, "Cassandra at db:9042", self.clock)
            async with served(jobs_routes(watch, "metrics"), self.http) as serving:
                request = serving.get if method == "GET" else serving.post
                reply = await request(f"/api/v1/{path}", headers=headers)
            await watch.stop()
            return reply

        reply = in_loop(run())
        return reply.status, orjson.loads(reply.body)

    def change(self, job: str, verb: str) -> tuple[int, Any]:
        status, answer = self.send(f"jobs/{job}/{verb}", method="POST", token=ADMIN)
        return status, answer.get("data", answer)


@pytest.fixture
def jobs(tmp_path: Path) -> ServedJobs:
    return ServedJobs(tmp_path)


def test_jobs_are_listed_in_the_order_in_which_they_were_planned(jobs: ServedJobs) -> None:
    jobs.add(bulk_job("b"), [JobState.DONE, JobState.LEASED], Counts(records=10, bad=1))
    jobs.add(bulk_job("a", BulkJobState.DONE))
    status, answer = jobs.send("jobs")
    assert (status, answer["status"], answer["data"]["dataset"]) == (200, "success", "metrics")
    assert [job["job"] for job in answer["data"]["jobs"]] == ["a", "b"]
    assert answer["data"]["jobs"][1]["counts"]["records"] == 70
    assert "warnings" not in answer


def test_a_truncated_list_keeps_jobs_that_have_not_ended_and_counts_the_others(jobs: ServedJobs) -> None:
    jobs.add(bulk_job("1", BulkJobState.BROKEN))
    for name in "2345":
        jobs.add(bulk_job(name, BulkJobState.DONE))
    _, answer = jobs.send("jobs?limit=3")
    assert [job["job"] for job in answer["data"]["jobs"]] == ["1", "4", "5"]
    assert "2 older jobs" in answer["warnings"][0]


def test_a_job_has_the_same_json_as_the_command(jobs: ServedJobs) -> None:
    jobs.add(bulk_job("a"), [JobState.FAILED], Counts(records=10))
    job = jobs.board.job("a")
    status, answer = jobs.send("jobs/a")
    assert status == 200
    assert answer["data"] == json.loads(json.dumps(json_value(JobStatus.of(job, jobs.board.parts(job)))))


@pytest.mark.parametrize("path", ["jobs/nothing", "jobs/%00", "jobs/%ff", f"jobs/{'a' * 101}"])
def test_a_missing_job_is_404(jobs: ServedJobs, path: str) -> None:
    assert jobs.send(path)[0] == 404
    assert jobs.send(f"{path}/cancel", method="POST", token=ADMIN)[0] == 404


def test_reading_accepts_either_token_and_changes_need_the_admin_token(jobs: ServedJobs) -> None:
    jobs.add(bulk_job("a"))
    for path in ("jobs", "jobs/a", "strandline/job-rates"):
        assert [jobs.send(path, token=token)[0] for token in ("", READ, ADMIN)] == [401, 200, 200]
    for verb in ("pause", "resume", "cancel"):
        codes = [jobs.send(f"jobs/a/{verb}", method="POST", token=token)[0] for token in ("", READ)]
        assert codes == [401, 403]
        assert jobs.send(f"jobs/a/{verb}", token=ADMIN)[0] == 405
    assert jobs.board.job("a") == bulk_job("a")


def test_a_pause_of_a_running_job_is_recorded_and_completed_by_a_worker_once_parts_are_fenced(jobs: ServedJobs) -> None:
    jobs.add(bulk_job("a"))
    (leased, *_) = jobs.board.parts(jobs.board.job("a"))
    leased = jobs.board.lease(leased, "worker", lambda part: part)
    assert leased is not None
    status, answer = jobs.change("a", "pause")
    assert (status, answer["settled"], answer["job"]["state"], answer["job"]["wanted"]) == (
        202,
        False,
        "running",
        "paused",
    )
    assert "`strandline job pause a`" in answer["note"]
    # Repeating it changes nothing.
    assert jobs.change("a", "pause")[0] == 202
    jobs.board.release(leased)
    kind = FencingKind()
    BulkWorker(jobs.board, {"import": kind}, jobs.clock, "worker").step()
    assert kind.fenced == [0]
    assert jobs.send("jobs/a")[1]["data"]["state"] == "paused"
    status, answer = jobs.change("a", "resume")
    assert (status, answer["settled"], answer["job"]["state"]) == (200, True, "running")
    assert "`strandline job work`" in answer["note"]


@pytest.mark.parametrize(
    ("state", "verb", "after"),
    [("planned", "pause", "paused"), ("planned", "cancel", "cancelled"), ("paused", "cancel", "cancelled")],
)
def test_a_job_without_leased_parts_stops_at_once(jobs: ServedJobs, state: str, verb: str, after: str) -> None:
    jobs.add(bulk_job("a", BulkJobState(state)))
    status, answer = jobs.change("a", verb)
    assert (status, answer["settled"], answer["job"]["state"]) == (200, True, after)
    assert jobs.board.job("a").state == after


@pytest.mark.parametrize("state", ["running", "broken"])
def test_a_job_whose_parts_may_still_land_does_not_stop_before_a_worker_fenced_them(
    jobs: ServedJobs, state: str
) -> None:
    jobs.add(bulk_job("a", BulkJobState(state)))
    status, answer = jobs.change("a", "cancel")
    assert (status, answer["job"]["state"], answer["job"]["wanted"]) == (202, state, "cancelled")


@pytest.mark.parametrize(
    ("state", "verb"), [("done", "cancel"), ("done", "resume"), ("cancelled", "resume"), ("failed", "pause")]
)
def test_a_change_that_the_state_does_not_allow_is_a_conflict(jobs: ServedJobs, state: str, verb: str) -> None:
    jobs.add(bulk_job("a", BulkJobState(state)))
    status, answer = jobs.change("a", verb)
    assert (status, answer["errorType"]) == (409, "conflict")
    assert f"is {state}" in answer["error"]


def test_a_resume_retries_failed_parts(jobs: ServedJobs) -> None:
    jobs.add(bulk_job("a", BulkJobState.FAILED), [JobState.FAILED, JobState.DONE])
    assert jobs.change("a", "resume")[1]["job"]["parts_failed"] == 0
    assert [part.state for part in jobs.board.parts(jobs.board.job("a"))][:2] == [JobState.PENDING, JobState.DONE]


def test_an_unresponsive_store_is_named(jobs: ServedJobs) -> None:
    jobs.unavailable = True
    for path, method in (("jobs", "GET"), ("jobs/a", "GET"), ("jobs/a/pause", "POST")):
        status, answer = jobs.send(path, method=method, token=ADMIN)
        assert (status, answer["errorType"]) == (503, "unavailable")
        assert "Cassandra at db:9042 does not answer: connection refused" in answer["error"]

"""The end of a job: with many concurrent workers, a full disk, and an unreachable webhook."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from strandline.clock import ManualClock
from strandline.jobs.board import BulkBoard
from strandline.jobs.completing import WEBHOOK_RETRY_MS, Completion, EventNotDelivered
from strandline.jobs.control_list import MAX_PACKED, ControlTooLarge, control_csv, pack_keys, unpack_keys
from strandline.jobs.counts import Counts
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.report import JobReport
from strandline.jobs.transitions import is_announced, resume
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.jobs import JobState
from strandline.store.protocol import Store
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
OUTCOME = PartOutcome(Counts(10, 0, 1, 9, 90), control=pack_keys(["{b}", '{a="x,y"}']))
PARTS = (
    BulkPart("metrics", "job", 0, '{"uri":"up"}', 1000, JobState.DONE, outcome=OUTCOME.to_json()),
    BulkPart("metrics", "job", 1, '{"uri":"up"}', 1000, JobState.DONE, outcome=OUTCOME.to_json()),
)
JOB = BulkJob("metrics", "job", "send", "{}", "hash", 2, 1000, NOW, BulkJobState.COMPLETING, changed_at=NOW)


class Webhook:
    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self.is_unreachable = False

    def __call__(self, key: str, body: bytes) -> None:
        if self.is_unreachable:
            raise EventNotDelivered("http://hook answered 503")
        self.calls.append((key, body))


def test_eight_workers_at_once_leave_one_event_file_and_one_change_of_state(tmp_path: Path) -> None:
    clock = ManualClock(NOW)
    server, webhook = MemoryServer(clock), Webhook()
    board = BulkBoard(cast("Store", MemoryStore(server)), "metrics", clock)
    board.add(JOB, PARTS)
    barrier, changed = threading.Barrier(8), list[bool]()

    def complete() -> None:
        completion = Completion(clock, tmp_path, webhook)
        own_board = BulkBoard(cast("Store", MemoryStore(server)), "metrics", clock)
        seen = own_board.job("job")
        barrier.wait()

        def finished(job: BulkJob) -> BulkJob:
            return completion.finish(job, PARTS) if job.state is BulkJobState.COMPLETING else job

        changed.append(own_board.change(seen, finished).version == JOB.version + 1)

    threads = [threading.Thread(target=complete) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert changed == [True] * 8
    done = board.job("job")
    assert (done.state, done.version) == (BulkJobState.DONE, JOB.version + 1)
    assert [path.name for path in tmp_path.iterdir()] == ["job.json"]
    event = json.loads((tmp_path / "job.json").read_bytes())
    assert (event["event"], event["key"], event["completed_at"]) == ("job.done", "job", NOW)
    assert event["counts"]["sent"] == 18
    # At least once, and always with the same content.
    assert {key for key, _ in webhook.calls} == {"job"}
    assert {body for _, body in webhook.calls} == {(tmp_path / "job.json").read_bytes()}


def test_an_unreachable_webhook_is_called_again_until_it_answers(tmp_path: Path) -> None:
    clock, webhook = ManualClock(NOW), Webhook()
    completion = Completion(clock, tmp_path, webhook)
    webhook.is_unreachable = True
    assert completion.finish(JOB, PARTS) == JOB
    assert (tmp_path / "job.json").exists()
    webhook.is_unreachable = False
    # Not immediately, but after a pause.
    assert completion.finish(JOB, PARTS) == JOB
    clock.sleep(2)
    done = completion.finish(JOB, PARTS)
    assert (done.state, done.reason, len(webhook.calls)) == (BulkJobState.DONE, "", 1)
    assert JobReport.from_json(done.report).counts.records == 20


def test_a_webhook_that_stays_unreachable_does_not_keep_a_job_from_being_done(tmp_path: Path) -> None:
    clock, webhook = ManualClock(NOW), Webhook()
    webhook.is_unreachable = True
    completion = Completion(clock, tmp_path, webhook)
    tries = 0
    while (done := completion.finish(JOB, PARTS)) == JOB:
        clock.sleep(5)
        tries += 1
    assert (clock.now_ms() - NOW - WEBHOOK_RETRY_MS) // 1000 in range(70)
    assert tries > 10
    assert (done.state, done.reason) == (BulkJobState.DONE, "its webhook was not called: http://hook answered 503")


FAILED = replace(JOB, state=BulkJobState.FAILED, reason="part 1: the disk is full")


def test_each_failure_of_a_job_has_an_event_with_a_key_of_its_own(tmp_path: Path) -> None:
    clock, webhook = ManualClock(NOW), Webhook()
    completion = Completion(clock, tmp_path, webhook)
    once = completion.announce(FAILED, PARTS)
    assert (once.state, once.reason, once.changed_at, is_announced(once)) == (
        BulkJobState.FAILED,
        FAILED.reason,
        NOW,
        True,
    )
    resumed = resume(once, NOW)
    again = replace(resumed, state=BulkJobState.FAILED, reason="part 0: the disk is full")
    assert not is_announced(again)
    assert is_announced(completion.announce(again, PARTS))
    completion.finish(replace(resumed, state=BulkJobState.COMPLETING), PARTS)
    assert [key for key, _ in webhook.calls] == ["job.failed.0", "job.failed.1", "job"]
    assert [json.loads(body)["event"] for _, body in webhook.calls] == ["job.failed", "job.failed", "job.done"]
    # A reader that waits for the file of a done job must not take that of a failed one for it.
    assert {path.name: json.loads(path.read_bytes())["reason"] for path in tmp_path.iterdir()} == {
        "job.failed.json": "part 0: the disk is full",
        "job.json": "",
    }


def test_the_event_of_a_failed_job_is_retried_and_given_up_like_that_of_a_done_job(tmp_path: Path) -> None:
    clock, webhook = ManualClock(NOW), Webhook()
    webhook.is_unreachable = True
    completion = Completion(clock, tmp_path, webhook)
    assert completion.announce(FAILED, PARTS) == FAILED
    clock.sleep(WEBHOOK_RETRY_MS / 1000)
    given_up = completion.announce(FAILED, PARTS)
    assert is_announced(given_up)
    assert given_up.reason == "part 1: the disk is full; its webhook was not called: http://hook answered 503"
    assert Completion(clock, unwritable(tmp_path)).announce(FAILED, PARTS) == FAILED


def unwritable(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file"


@pytest.mark.parametrize("folder", [unwritable, lambda _folder: None])
def test_a_job_waits_for_a_folder_that_its_control_sample_can_be_written_to(
    tmp_path: Path, folder: Callable[[Path], Path | None]
) -> None:
    clock = ManualClock(NOW)
    completion = Completion(clock, folder(tmp_path))
    clock.sleep(86_400)
    assert completion.finish(JOB, PARTS, has_control=True) == JOB
    done = Completion(clock, tmp_path / "other").finish(JOB, PARTS, has_control=True)
    assert done.state is BulkJobState.DONE
    assert (tmp_path / "other" / "job.control.csv").read_text() == 'series\n"{a=""x,y""}"\n{b}\n'
    assert json.loads((tmp_path / "other" / "job.json").read_bytes())["control_file"] == "job.control.csv"


def test_control_keys_of_parts_are_joined_sorted_and_bounded() -> None:
    keys = [f'{{host="{number:x}{hash((number, 7)) & 0xFFFFFFFF:x}"}}' for number in range(200_000)]
    assert unpack_keys(pack_keys(keys[:10])) == sorted(keys[:10])
    assert pack_keys([]) == ""
    halves = [pack_keys(keys[:6]), "", pack_keys(keys[4:10])]
    assert control_csv(halves) == control_csv([pack_keys(keys[:10])])
    with pytest.raises(ControlTooLarge, match=f"over the limit of {MAX_PACKED:,}"):
        pack_keys(keys)


def test_outcomes_that_older_workers_wrote_have_no_control_keys() -> None:
    written = replace(OUTCOME, control="").to_json().replace(',"control":""', "")
    assert "control" not in written
    assert PartOutcome.from_json(written) == replace(OUTCOME, control="")

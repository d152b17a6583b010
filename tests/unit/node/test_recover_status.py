"""`strandline recover status`: reading the store, and the report."""

import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from strandline.clock import ManualClock
from strandline.errors import ExitCode
from strandline.node.cli.main import main
from strandline.node.masking import SecretMask
from strandline.node.output import OutputFormat, make_output
from strandline.node.recovering.status_report import (
    RecoverStatus,
    ShardStatus,
    clock_differences,
    known_shards,
    shard_status,
)
from strandline.node.settings import load
from strandline.recovery.job_board import JobBoard
from strandline.store.jobs import Job, JobState
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, ManifestWrite, ShardId
from strandline.store.sqlite import open_sqlite_store
from support.manifest_rows import NEVER, beginning, cut, rows_of

pytestmark = pytest.mark.unit

SHARD = ShardId("metrics", 0)
SHAPE = DatasetShape("metrics", 3_600_000, 2, "xxh3-128", 2)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[Store]:
    with closing(open_sqlite_store(tmp_path / "store.sqlite", clock)) as opened:
        yield opened


@pytest.fixture
def jobs() -> list[Job]:
    return [
        Job(SHARD, bucket, "p", 100 * bucket, 100 * bucket + 100, frozenset({0, 1}), wants_keys=True, life=NEVER)
        for bucket in (8, 9, 10)
    ]


def filled(store: Store, clock: ManualClock) -> None:
    store.create_dataset(SHAPE)
    ownership = store.take(SHARD, "0123456789abcdef", None, now=clock.now_ms(), topic_id="topic-1")
    assert ownership is not None
    cuts = (beginning(7, 100), cut(8, 100, 150), cut(9, 150, 180))
    store.commit(ownership, ManifestWrite(cuts=cuts, groups=(*rows_of(8, (0, 1)), *rows_of(9, (0,))), present=0))


def status_of(store: Store, clock: ManualClock) -> ShardStatus:
    return shard_status(store, SHARD, 2, clock.now_ms())


def printed(report: RecoverStatus, output_format: OutputFormat = "text") -> str:
    out = StringIO()
    make_output(output_format, out, StringIO(), ManualClock(), SecretMask()).result(report)
    return out.getvalue()


def test_a_shard_s_owner_and_checkpoints_are_reported(store: Store, clock: ManualClock) -> None:
    filled(store, clock)
    clock.sleep(12)
    status = status_of(store, clock)
    assert (status.owner, status.epoch, status.seen_seconds_ago) == ("0123456789abcdef", 1, 12.0)
    assert (status.checkpoint, status.newest_cut, status.newest_bucket) == (150, 180, 9)
    assert status.index_checkpoint in (150, 180)
    assert (status.jobs, status.fraction_done) == ((), 1.0)
    text = printed(RecoverStatus("metrics", (status,)))
    assert "01234567" in text
    assert "12 s ago" in text


def test_a_shard_that_was_never_owned_differs_from_a_released_one(store: Store, clock: ManualClock) -> None:
    never = status_of(store, clock)
    assert (never.owner, never.checkpoint, never.newest_bucket) == ("", None, None)
    assert "never owned" in printed(RecoverStatus("metrics", (never,)))
    ownership = store.take(SHARD, "somebody", None, now=clock.now_ms(), topic_id="topic-1")
    assert ownership is not None
    store.touch(ownership, None, 0)
    released = status_of(store, clock)
    assert (released.owner, released.seen_seconds_ago) == ("somebody", None)
    assert "released" in printed(RecoverStatus("metrics", (released,)))


def test_jobs_are_listed_with_state_epoch_worker_lease_failures_and_reason(
    store: Store, clock: ManualClock, jobs: list[Job]
) -> None:
    board = JobBoard(store, clock)
    board.adopt(SHARD, jobs)
    first = board.lease(board.jobs(SHARD)[0], "worker-1")
    assert first is not None
    assert board.finish(first)
    second = board.lease(board.jobs(SHARD)[1], "worker-2")
    assert second is not None
    third = board.lease(board.jobs(SHARD)[2], "worker-3")
    assert third is not None
    board.fail(third, "bad record")
    clock.sleep(20)
    status = status_of(store, clock)
    assert [job.state for job in status.jobs] == [JobState.DONE, JobState.LEASED, JobState.PENDING]
    assert (status.jobs_done, status.fraction_done) == (1, pytest.approx(1 / 3))
    leased, failed = status.jobs[1:]
    assert (leased.worker, leased.epoch, leased.lease_left_seconds) == ("worker-2", 1, 100.0)
    assert (failed.failures, failed.reason, failed.lease_left_seconds) == (1, "offsets [1000, 1100): bad record", None)
    report = RecoverStatus("metrics", (status,))
    assert report.exit_code == ExitCode.OK
    text = printed(report)
    assert "1 of 3" in text
    assert "33%" in text
    assert "1 min 40 s" in text
    assert "worker-1" not in text  # Done jobs are only counted.
    shard = json.loads(printed(report, "json"))["shards"][0]
    assert [job["state"] for job in shard["jobs"]] == ["done", "leased", "pending"]


def test_a_stopped_replay_is_reported_with_its_reason_and_an_exit_code(
    store: Store, clock: ManualClock, jobs: list[Job]
) -> None:
    board = JobBoard(store, clock)
    board.adopt(SHARD, jobs[:1])
    for _ in range(4):
        leased = board.lease(board.jobs(SHARD)[0], "w")
        assert leased is not None
        board.fail(leased, "bad record")
    report = RecoverStatus("metrics", (status_of(store, clock),))
    assert report.exit_code == ExitCode.FAILED
    assert "The replay of shard 0 has stopped at bucket 8: offsets [800, 900): bad record" in printed(report)


def test_long_lists_of_jobs_are_truncated_only_in_a_table(store: Store, clock: ManualClock, jobs: list[Job]) -> None:
    JobBoard(store, clock).adopt(SHARD, [replace(jobs[0], bucket=number) for number in range(60)])
    report = RecoverStatus("metrics", (status_of(store, clock),))
    assert "and 10 more, see --output json." in printed(report)
    assert len(json.loads(printed(report, "json"))["shards"][0]["jobs"]) == 60


def test_shards_are_those_of_the_dataset_and_those_that_were_added(store: Store, clock: ManualClock) -> None:
    assert known_shards(store, SHAPE) == [0, 1]
    for shard in (2, 3, 5):
        store.take(ShardId("metrics", shard), f"owner-{shard}", None, now=clock.now_ms(), topic_id="topic-1")
    assert known_shards(store, SHAPE) == [0, 1, 2, 3]


@pytest.fixture
def sqlite_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Settings with a SQLite store, isolated from this machine's settings."""
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)
    path = tmp_path / "strandline.toml"
    path.write_text(
        f'[dataset]\nname = "metrics"\n[store]\nkind = "sqlite"\nsqlite_file = "{tmp_path / "store.sqlite"}"\n'
        f'[shard]\ndata_dir = "{tmp_path}"\n'
    )
    return path


def test_the_command_reports_what_is_in_the_store(
    sqlite_settings: Path, store: Store, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    filled(store, clock)
    assert main(["recover", "status", "--config", str(sqlite_settings), "--output", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert [shard["shard"] for shard in document["shards"]] == [0, 1]
    assert document["shards"][0]["checkpoint"] == 150
    assert main(["recover", "status", "--config", str(sqlite_settings), "--shard", "1"]) == ExitCode.OK
    assert "never owned" in capsys.readouterr().out


def test_a_missing_dataset_is_reported(sqlite_settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recover", "status", "--config", str(sqlite_settings)]) == ExitCode.FAILED
    assert "the store has no dataset 'metrics'" in capsys.readouterr().err


def test_a_clock_that_differs_from_the_store_s_is_named() -> None:
    for ahead, words in ((90_000, "90 s ahead of"), (-90_000, "90 s behind"), (60_000, "")):
        report = RecoverStatus("metrics", (), {"node": ahead})
        lines = [block for block in report.blocks() if isinstance(block, str) and block.startswith("Clocks differ")]
        expected = [f"Clocks differ: the clock 'node' is {words} the others. Check time synchronisation."]
        assert lines == (expected if words else [])


def test_a_store_without_a_server_has_no_clock_to_compare(store: Store, clock: ManualClock) -> None:
    assert clock_differences(store, clock.now_ms()) == {}

"""The status file of a shard."""

import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from strandline.node.shard import status_file
from strandline.node.shard.running import RunningShard
from strandline.node.shard.shard import Shard
from strandline.node.shard.stages import Stage
from strandline.node.shard.status import Phase
from strandline.node.shard.status_file import StatusFile, StatusFileUnwritable, status_of
from strandline.recovery.offset_policy import Accepted
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.shard_world import GRACE, HOUR, METRICS, World, produce_everywhere

pytestmark = pytest.mark.unit


@pytest.fixture
def running(world: World) -> RunningShard:
    """A shard that has not started yet."""
    return RunningShard(world.parts(), accepted=Accepted())


@pytest.fixture
def file(world: World, tmp_path: Path) -> StatusFile:
    return StatusFile(tmp_path / "status.json", world.clock)


def start(running: RunningShard, world: World) -> Shard:
    running.shard = world.shard = Shard.start(world.parts(), running.status)
    return running.shard


def read(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    return document


def test_before_its_start_a_shard_has_a_phase_and_a_process(running: RunningShard) -> None:
    status = status_of(running)
    assert (status["phase"], status["position"], status["checkpoint"], status["keys"]) == ("acquiring", None, -1, 0)
    assert status["pid"] == os.getpid()
    assert status["cpu_seconds"] > 0
    assert 1 << 20 < status["resident_bytes"] <= 2 * status["peak_resident_bytes"]


def test_a_running_shard_reports_all_its_parts(running: RunningShard, world: World) -> None:
    start(running, world)
    produce_everywhere(world)
    world.read_all()
    status = status_of(running)
    assert (status["phase"], status["position"], status["checkpoint"]) == ("active", 1, 0)
    assert (status["keys"], status["unstored_buckets"]) == (len(METRICS), 0)
    assert (status["counters"]["records"], status["counters"]["samples"]) == (1, len(METRICS))
    assert status["buffer"]["samples"] == len(METRICS)
    assert status["buffer"]["budget_used"] > 0
    assert set(status["stages"]) == {stage.value for stage in Stage}
    world.pass_time(HOUR + GRACE)
    world.running.step()
    assert status_of(running)["unstored_buckets"] == 1
    world.store_due()
    status = status_of(running)
    assert (status["unstored_buckets"], status["checkpoint"]) == (0, 1)


def test_the_file_has_the_status_and_the_time_of_its_writing(
    running: RunningShard, world: World, file: StatusFile, tmp_path: Path
) -> None:
    start(running, world)
    produce_everywhere(world)
    world.settle()
    file.write(running)
    document = read(tmp_path / "status.json")
    assert document["written_at"] == world.clock.now_ms()
    assert set(document) == {*status_of(running), "written_at"}
    assert document["counters"] == json.loads(json.dumps(status_of(running)["counters"]))
    assert list(tmp_path.glob("status.json.*")) == []


def test_a_number_that_is_invalid_in_json_is_never_written(
    running: RunningShard, file: StatusFile, tmp_path: Path
) -> None:
    file.write(running)
    running.status.fraction = math.nan
    with pytest.raises(ValueError, match="not JSON compliant"):
        file.write(running)
    assert read(tmp_path / "status.json")["fraction"] is None


def test_a_reader_finds_the_old_file_or_the_new_one_and_both_are_complete(
    running: RunningShard, file: StatusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "status.json"
    file.write(running)
    running.status.phase = Phase.ACTIVE
    phases: list[str] = []
    replace = Path.replace

    def replace_and_read(unfinished: Path, target: Path) -> Path:
        phases.extend([read(path)["phase"], read(unfinished)["phase"]])
        return replace(unfinished, target)

    monkeypatch.setattr(Path, "replace", replace_and_read)
    file.write(running)
    assert phases == ["acquiring", "active"]
    assert read(path)["phase"] == "active"


def test_a_failed_write_leaves_the_file_unchanged(
    running: RunningShard, file: StatusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write(running)
    running.status.phase = Phase.ACTIVE
    write_text = Path.write_text

    def fail(path: Path, text: str, **options: Any) -> int:
        write_text(path, text[:20], **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(StatusFileUnwritable, match=r"status.json can't be written: No space left on device"):
        file.write(running)
    assert read(tmp_path / "status.json")["phase"] == "acquiring"


def test_an_open_status_file_does_not_change_for_its_reader(running: RunningShard, world: World) -> None:
    start(running, world)
    counters = running.status.counters
    for number in range(1, 3):
        counts = counters.dropped_series
        before = dict(counts)
        world.log.append(compress(encode_request([Series([], [(1, 1.0)])])), world.clock.now_ms())
        world.read_all()
        assert counts == before
        assert counters.dropped_series == {"NO_LABELS": number}


class CountedWrites:
    """Counts the writes, and signals them."""

    def __init__(self, file: StatusFile, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by: list[str] = []
        self.happened = threading.Event()
        write = file.write

        def record(running: RunningShard) -> None:
            self.by.append(threading.current_thread().name)
            self.happened.set()
            write(running)

        monkeypatch.setattr(file, "write", record)
        monkeypatch.setattr(status_file, "_EVERY_S", 0.001)

    def wait_for_the_next(self) -> None:
        self.happened.clear()
        assert self.happened.wait(60)


def test_the_file_is_updated_by_a_thread_and_once_more_at_the_end(
    running: RunningShard, file: StatusFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = CountedWrites(file, monkeypatch)
    with file.updating(running):
        assert read(tmp_path / "status.json")["phase"] == "acquiring", "from the beginning"
        running.status.phase = Phase.ACTIVE
        writes.wait_for_the_next()
        writes.wait_for_the_next()
        assert read(tmp_path / "status.json")["phase"] == "active"
        assert "status" in writes.by
        running.status.phase = Phase.STOPPED
    assert read(tmp_path / "status.json")["phase"] == "stopped"
    assert writes.by[-1] == threading.current_thread().name
    assert "status" not in {thread.name for thread in threading.enumerate()}


def test_the_final_status_is_not_written_before_the_thread_has_ended(
    running: RunningShard, file: StatusFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, final_write = threading.Event(), threading.Event()
    overtaken: list[bool] = []
    monkeypatch.setattr(status_file, "_EVERY_S", 0.001)
    with file.updating(running):

        def write(_running: RunningShard) -> None:
            if threading.current_thread().name != "status":
                final_write.set()
                return
            arrived.set()
            overtaken.append(final_write.wait(0.05))

        monkeypatch.setattr(file, "write", write)
        assert arrived.wait(60)
    assert final_write.is_set()
    assert not any(overtaken)


def test_the_file_has_the_reason_of_a_failed_shard(
    running: RunningShard, world: World, file: StatusFile, tmp_path: Path
) -> None:
    world.log.reachable = False
    with pytest.raises(Exception, match="made unreachable"), file.updating(running):
        running.run()
    document = read(tmp_path / "status.json")
    assert (document["phase"], document["reason"]) == ("failed", "the log in memory was made unreachable")


def test_a_file_that_can_not_be_written_is_an_error_before_the_shard_is_taken(
    running: RunningShard, world: World, tmp_path: Path
) -> None:
    unwritable = StatusFile(tmp_path / "no-such-folder" / "status.json", world.clock)
    with pytest.raises(StatusFileUnwritable, match="No such file or directory"), unwritable.updating(running):
        running.run()
    assert world.sqlite.state(world.options.shard) is None


def test_a_file_that_becomes_unwritable_neither_ends_a_shard_nor_hides_the_reason_of_its_end(
    running: RunningShard, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    file = StatusFile(folder / "status.json", world.clock)
    writes = CountedWrites(file, monkeypatch)

    @file.updating(running)
    def run() -> None:
        folder.rename(tmp_path / "elsewhere")
        for _ in range(2):
            writes.wait_for_the_next()
        raise KeyError("why it ended")

    with capture_logs() as lines, pytest.raises(KeyError, match="why it ended"):
        run()
    assert {line["event"] for line in lines} == {"the status file could not be updated"}
    assert len(lines) >= 2

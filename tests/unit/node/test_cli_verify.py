"""`strandline recover verify` on a SQLite store, without a server."""

import json
import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import structlog

from strandline.errors import ExitCode
from strandline.node.cli import main as cli
from strandline.node.cli import recover_verify as module
from strandline.node.cli.exit_codes import EXIT_CODES
from strandline.node.settings import Settings, load
from strandline.node.settings.writing import write_settings
from strandline.node.shard.folder_lock import locked
from strandline.node.shard.index_storage import LuceneStorage
from strandline.node.shard.log import LogUnreachable
from strandline.node.shard.shard import Shard
from strandline.store.protocol import StoreUnavailable
from strandline.store.rows import ShardId
from support.shard_world import METRICS, StoreCall, World, other_group, produce_everywhere
from support.verifying import Damage, copy_of

pytestmark = pytest.mark.unit

FIRST = 1_000


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A store, and the folder of a stopped shard with its local copy."""
    from strandline.index.vm import start_vm  # noqa: PLC0415 - not needed to collect tests

    start_vm()
    folder = tmp_path_factory.mktemp("data")
    with closing(World(folder)) as world:
        options = world.options
        copy = folder / "shards" / "metrics" / "0" / "index"
        storage = LuceneStorage(options.shard, copy, options.policy.retention, 16, 1.0, world.clock)
        world.shard = Shard.start(world.parts(storage), world.status)  # type: ignore[arg-type]  # the real one
        for _ in range(3):
            produce_everywhere(world)
            world.pass_hours(1)
        world.running.close()
        world.crash()
        yield world


@pytest.fixture
def world(sound: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    with closing(copy_of(sound, tmp_path / "data")) as copied:
        monkeypatch.setattr(cli, "SystemClock", lambda: copied.clock)
        monkeypatch.setattr(module, "count_partitions", lambda _settings: 1)
        yield copied
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def settings(world: World) -> Path:
    folder = world.options.folder
    return write_settings(
        folder / "settings.toml",
        {
            "store": {"kind": "sqlite"},
            "dataset": {
                "name": "metrics",
                "flush_interval": "1h",
                "groups": 4,
                "grace": "1m",
                "retention": "5h",
                "margin": "6h",
                "history": "24h",
            },
            "shard": {"data_dir": str(folder), "java_heap": "512m"},
        },
    )


def verify(settings: Path, *arguments: str) -> int:
    return cli.main(["recover", "verify", "--config", str(settings), *arguments])


def document(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_consistent_store_gives_exit_code_0_and_counts(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(settings) == ExitCode.OK
    captured = capsys.readouterr()
    assert "No findings." in captured.out
    assert "note:" not in captured.out
    assert "Verifying 1 shard of dataset metrics" in captured.err
    assert "shard 0 (no findings)" in captured.err
    assert verify(settings, "--output", "json") == ExitCode.OK
    report = document(capsys)
    (shard,) = report["shards"]
    assert (report["dataset"], report["sound"], shard["sound"]) == ("metrics", True, True)
    assert shard["counts"]["samples"] == 3 * len(METRICS)
    assert shard["counts"]["documents"] == shard["counts"]["keys"] == len(METRICS)
    assert shard["findings"] == shard["notes"] == []


def test_findings_are_listed_with_a_remedy_and_give_exit_code_4(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = other_group(world)
    damage = Damage(world)
    damage.execute("DELETE FROM segments WHERE bucket = ? AND flush_group = ?", FIRST + 1, group)
    damage.row(FIRST + 2, group, checksum=bytes(16))
    assert verify(settings) == ExitCode.VERIFY_FAILED
    captured = capsys.readouterr()
    assert "2 findings:" in captured.out
    assert f"shard 0, bucket {FIRST + 1} (1970-02-11T17:00:00Z): 0 segments of group {group}" in captured.out
    assert "[segment-missing]\n    Read the bucket again with `strandline offsets rewind`" in captured.out
    assert "[segment-checksum]" in captured.out
    assert "shard 0 (2 findings)" in captured.err
    assert verify(settings, "--output", "json") == ExitCode.VERIFY_FAILED
    report = document(capsys)
    assert report["sound"] is False
    (shard,) = report["shards"]
    assert [(one["kind"], one["bucket"], one["group"]) for one in shard["findings"]] == [
        ("segment-missing", FIRST + 1, group),
        ("segment-checksum", FIRST + 2, group),
    ]


def test_without_reading_samples_segments_are_counted_and_late_samples_are_not(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = other_group(world)
    Damage(world).late(FIRST + 1, group, (FIRST, 1))
    assert verify(settings) == ExitCode.VERIFY_FAILED
    assert verify(settings, "--no-samples") == ExitCode.OK
    Damage(world).row(FIRST + 1, group, samples=1)
    assert verify(settings, "--no-samples") == ExitCode.VERIFY_FAILED
    assert "[segment-sums]" in capsys.readouterr().out


def test_the_local_copy_is_compared_and_unchanged(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = world.options.folder / "shards" / "metrics" / "0" / "index"
    stray = copy / "columns-of-a-save-that-was-not-finished"
    stray.write_bytes(b"")
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    assert verify(settings) == ExitCode.OK
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before
    (columns,) = copy.glob("columns-1*")
    columns.write_bytes(b"nonsense")
    assert verify(settings, "--output", "json") == ExitCode.OK
    capsys.readouterr()
    assert verify(settings, "--output", "json") == ExitCode.OK
    (note,) = document(capsys)["shards"][0]["notes"]
    assert note["kind"] == "copy-unused"


def test_the_copy_of_a_running_shard_is_not_read(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(world.options.folder / "shards" / "metrics" / "0"):
        assert verify(settings) == ExitCode.OK
    out = capsys.readouterr().out
    assert "note: shard 0: the local copy in" in out
    assert "was not checked: a shard is using it" in out


def test_partitions_that_were_added_later_are_verified_and_those_never_read_are_a_note(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Damage(world).execute("UPDATE datasets SET partitions = 2")
    world.sqlite.take(ShardId("metrics", 4), "me", None, now=world.clock.now_ms(), topic_id="topic-1")
    assert verify(settings, "--output", "json") == ExitCode.OK
    report = document(capsys)
    assert [one["shard"] for one in report["shards"]] == [0, 1, 4]
    assert [note["kind"] for one in report["shards"] for note in one["notes"]] == ["never-read"]


def test_partitions_of_the_topic_that_no_node_reads_are_named(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenario 47: there are no findings, but acknowledged records are not stored."""
    monkeypatch.setattr(module, "count_partitions", lambda _settings: 3)
    assert verify(settings) == ExitCode.OK
    out = capsys.readouterr().out
    assert "No findings." not in out
    assert "No findings, but partitions 1-2 have never been read by a node" in out
    assert "note: shard 2: no node has ever read it" in out
    assert verify(settings, "--output", "json") == ExitCode.OK
    assert (report := document(capsys))["unread"] == [1, 2]
    assert report["sound"] is True
    Damage(world).execute("DELETE FROM segments WHERE bucket = ?", FIRST + 1)
    assert verify(settings) == ExitCode.VERIFY_FAILED
    assert "findings, and partitions 1-2 have never been read by a node: nothing of them is stored:" in (
        capsys.readouterr().out
    )


def test_without_kafka_the_stored_data_is_verified(
    settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def fail(given: Settings) -> int:
        waited.append(given.kafka.request_timeout.seconds)
        raise LogUnreachable("no broker has answered")

    monkeypatch.setattr(module, "count_partitions", fail)
    assert verify(settings) == ExitCode.OK
    out = capsys.readouterr().out
    assert "No findings." in out
    assert "can't check for partitions that no node reads: no broker has answered" in out
    assert waited == [5.0]


def test_only_the_chosen_shards_are_reported(world: World, settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world.sqlite.take(ShardId("metrics", 1), "me", None, now=world.clock.now_ms(), topic_id="topic-1")
    assert verify(settings, "--shard", "1", "--shard", "1", "--output", "json") == ExitCode.OK
    assert [one["shard"] for one in document(capsys)["shards"]] == [1]
    assert verify(settings, "--shard", "7") == ExitCode.USAGE
    assert "shard 7 of dataset 'metrics' has never been read" in capsys.readouterr().err


def test_a_missing_store_or_dataset_is_an_error_and_is_not_created(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_DATASET__NAME", "another")
    assert verify(settings) == ExitCode.USAGE
    assert "the store has no dataset 'another'" in capsys.readouterr().err
    elsewhere = world.options.folder / "elsewhere.sqlite"
    monkeypatch.setenv("STRANDLINE_STORE__SQLITE_FILE", str(elsewhere))
    assert verify(settings) == ExitCode.USAGE
    assert f"there is no store at {elsewhere}" in capsys.readouterr().err
    assert not elsewhere.exists()


def test_another_shape_than_the_datasets_is_refused(
    settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_DATASET__GROUPS", "8")
    assert verify(settings) == ExitCode.FAILED
    assert "was created with dataset.groups = 4, which can't be changed to 8" in capsys.readouterr().err


def test_a_store_that_becomes_unreachable_is_an_expected_error(
    world: World, settings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(call: StoreCall) -> None:
        if call.name == "segments":
            raise StoreUnavailable("the store is not there")

    world.store.before = fail
    monkeypatch.setattr(module, "open_store", lambda *_: world.store)
    assert verify(settings, "--output", "json") == ExitCode.FAILED
    assert document(capsys)["error"]["message"] == "the store is not there"


def test_the_exit_codes_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["recover", "verify", "--help"]) == ExitCode.OK
    captured = capsys.readouterr().out
    for code in (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.VERIFY_FAILED):
        assert f"{code.value:<4}{EXIT_CODES[code]}" in captured

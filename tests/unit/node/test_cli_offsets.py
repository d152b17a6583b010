"""`strandline offsets`, without servers."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from strandline.errors import ExitCode
from strandline.node.cli.exit_codes import EXIT_CODES
from strandline.node.offsets.deployment import NoSuchDataset, open_deployment
from strandline.node.settings import Settings, load
from strandline.node.settings.shard_sections import ShardSettings, StoreSettings
from strandline.node.shard.ownership import OWNER_TIMEOUT_S, take_shard
from strandline.recovery.offset_policy import Accepted
from support.fake_machine import FakeProcess, running_process
from support.offsets_commands import Commands, MemoryTopic, commands_over
from support.shard_world import (
    GRACE,
    HOUR,
    METRICS,
    START,
    StoreCall,
    World,
    group_fails,
    other_group,
    produce_everywhere,
)

pytestmark = pytest.mark.unit

FIRST = START // HOUR
A_TIME = "1970-02-11T17:10"  # In the second hour, past the grace of the first.


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Isolates a test from this machine's settings, and restores logging."""
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Three hours with a record each, all stored, and no owner of the shard."""
    with closing(World(tmp_path)) as started:
        started.options = replace(started.options, owner_name="here:4711")
        started.start()
        for hour in range(3):
            produce_everywhere(started, str(hour))
            started.pass_hours(1)
        started.running.close()
        started.crash()
        yield started


@pytest.fixture
def commands(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return commands_over(world, monkeypatch, capsys)


def superseded(world: World) -> set[int]:
    return {row.bucket for row in world.manifest().groups if row.superseded}


# Show.


def test_show_has_the_owner_and_the_checkpoints_of_a_shard(world: World, commands: Commands) -> None:
    produce_everywhere(world, "not stored")
    code, document = commands.json("offsets", "show")
    assert code == ExitCode.OK
    assert (document["dataset"], document["topic_id"], document["partitions"]) == ("metrics", "topic-1", 1)
    assert document["newest_ready_hour"] == "1970-02-11T18"
    (shard,) = document["shards"]
    state = world.manifest().state
    assert (shard["shard"], shard["owner"], shard["epoch"]) == (0, state.owner, 1)
    assert (shard["seen_ms_ago"], shard["topic_id"], shard["is_another_topic"]) == (None, "topic-1", False)
    until = (FIRST + 3) * HOUR
    assert shard["checkpoints"] == {
        "lowest": 3,
        "highest": 3,
        "index": 3,
        "stored_until": until,
        "stored_until_text": "1970-02-11T19:00:00Z",
        "behind_ms": world.clock.now_ms() - until,
    }
    assert (shard["log_start"], shard["log_end"], shard["lag"], shard["deleted_records"]) == (0, 4, 1, 0)
    assert (shard["deleted_in_ms"], shard["losses"]) == (None, [])


def test_show_has_text_output_too(commands: Commands) -> None:
    code, out, err = commands.text("offsets", "show")
    assert (code, err) == (ExitCode.OK, "")
    lines = out.splitlines()
    assert lines[:2] == [
        "Dataset metrics, topic id topic-1, partitions: 1",
        "Newest ready hour: 1970-02-11T18",
    ]
    assert lines[3].split() == ["shard", "epoch", "owner", "seen", "stored", "until", "behind"]
    assert lines[4].split()[3:] == ["released", "1970-02-11T19:00:00Z", "10m"]
    assert lines[7].split() == ["0", "3", "3", "3", "0", "3", "0", "-"]


def test_show_has_the_retention_margin(world: World, commands: Commands) -> None:
    commands.topic.retention_ms = 4 * HOUR
    assert commands.json("offsets", "show")[1]["shards"][0]["deleted_in_ms"] is None, (
        "no unstored record can be deleted"
    )
    produce_everywhere(world, "not stored")
    # A lower bound: the first record of the open bucket may be as old as the bucket.
    oldest = (FIRST + 3) * HOUR + GRACE
    left = oldest + 4 * HOUR - world.clock.now_ms()
    assert commands.json("offsets", "show")[1]["shards"][0]["deleted_in_ms"] == left
    world.pass_time(10 * HOUR)
    assert commands.json("offsets", "show")[1]["shards"][0]["deleted_in_ms"] == 0


def test_show_has_the_lowest_and_highest_checkpoint_of_groups(world: World, commands: Commands) -> None:
    world.start()
    produce_everywhere(world)
    world.store.before = group_fails(other_group(world))
    world.pass_hours(1)
    (shard,) = commands.json("offsets", "show", "0")[1]["shards"]
    points = shard["checkpoints"]
    assert (points["lowest"], points["highest"], points["index"]) == (3, 4, 4)
    assert shard["lag"] == 1
    assert shard["seen_ms_ago"] is not None


def test_show_lists_deleted_records_and_accepted_losses(world: World, commands: Commands) -> None:
    produce_everywhere(world, "lost")
    produce_everywhere(world, "kept")
    world.log.delete_before(4)
    code, out, _ = commands.text("offsets", "show")
    assert code == ExitCode.OK
    assert "Shard 0: offsets deleted from the log before they were stored: 1\n" in out
    world.start(accepted=Accepted(loss_to=4))
    world.pass_hours(1)
    code, out, _ = commands.text("offsets", "show")
    assert f"Shard 0: accepted loss of offsets [3, 4) in bucket {FIRST + 3}." in out
    (loss,) = commands.json("offsets", "show")[1]["shards"][0]["losses"]
    assert (loss["first"], loss["behind"], loss["buckets"], loss["reason"]) == (3, 4, [FIRST + 3], "deleted")


def test_show_compares_no_offsets_of_two_topics(world: World, commands: Commands) -> None:
    world.log.recreate()
    (shard,) = commands.json("offsets", "show")[1]["shards"]
    assert (shard["is_another_topic"], shard["lag"], shard["checkpoints"]["lowest"]) == (True, None, 3)
    assert "was read from another topic, topic-1" in commands.text("offsets", "show")[1]


def test_show_lists_partitions_without_an_owner(world: World, commands: Commands) -> None:
    commands.topic = MemoryTopic(world, world)
    code, document = commands.json("offsets", "show")
    assert (code, document["newest_ready_hour"]) == (ExitCode.OK, None)
    assert (document["shards"][1]["owner"], document["shards"][1]["checkpoints"]) == (None, None)
    assert "none yet" in commands.text("offsets", "show")[1]
    code, document = commands.json("offsets", "show", "1")
    assert [entry["shard"] for entry in document["shards"]] == [1]


@pytest.mark.parametrize("verb", [["show", "1"], ["history", "1"], ["rewind", "1", "--to-offset", "0"]])
def test_a_shard_that_is_not_there_is_refused(commands: Commands, verb: list[str]) -> None:
    code, document = commands.json("offsets", *verb)
    assert (code, document["error"]["type"]) == (ExitCode.FAILED, "NoSuchShard")
    assert "there is no shard 1: topic metrics has 1 partitions" in document["error"]["message"]


# History.


def test_history_lists_buckets_newest_first(world: World, commands: Commands) -> None:
    code, document = commands.json("offsets", "history", "0")
    assert (code, document["shard"], document["groups"], document["more"]) == (ExitCode.OK, 0, 4, False)
    assert [entry["bucket"] for entry in document["buckets"]] == [FIRST + 2, FIRST + 1, FIRST, FIRST - 1]
    newest, *_, oldest = document["buckets"]
    assert newest == {
        "bucket": FIRST + 2,
        "time": "1970-02-11T18:00:00Z",
        "start": 2,
        "end": 3,
        "records": 1,
        "samples": len(METRICS),
        "late_samples": 0,
        "stored_groups": 4,
        "superseded_groups": 0,
        "written_by": ["here:4711"],
        "written_at": max(row.written_at for row in world.manifest().groups),
        "lost_to": None,
        "reset": False,
    }
    assert (oldest["reset"], oldest["stored_groups"], oldest["written_by"]) == (True, 0, [])


def test_history_has_a_limit(commands: Commands) -> None:
    for limit in (1, 2, 3):
        document = commands.json("offsets", "history", "0", "--limit", str(limit))[1]
        assert [entry["bucket"] for entry in document["buckets"]] == [FIRST + 2 - place for place in range(limit)]
        assert document["more"] is True
    assert commands.json("offsets", "history", "0", "--limit", "4")[1]["more"] is False


def test_history_of_a_shard_that_has_stopped_long_ago_is_still_found(world: World, commands: Commands) -> None:
    world.pass_time(20 * HOUR)
    document = commands.json("offsets", "history", "0", "--limit", "2")[1]
    assert [entry["bucket"] for entry in document["buckets"]] == [FIRST + 2, FIRST + 1]


def test_history_has_remarks_on_unusual_buckets(world: World, commands: Commands) -> None:
    world.start()
    world.produce(("m", "late", START, 1.0))
    world.pass_hours(1)
    world.running.close()
    world.crash()
    assert commands.text("offsets", "rewind", "0", "--to-bucket", str(FIRST + 2), "--yes")[0] == ExitCode.OK
    code, out, _ = commands.text("offsets", "history", "0")
    assert code == ExitCode.OK
    lines = out.splitlines()
    assert lines[1].endswith("superseded groups: 4")
    assert lines[3].split()[-3:] == ["4/4", "here:4711", "-"]
    assert lines[-1].rstrip().endswith("reading began here")
    newest_again = commands.json("offsets", "history", "0")[1]["buckets"][0]
    assert (newest_again["samples"], newest_again["stored_groups"], newest_again["superseded_groups"]) == (0, 0, 4)
    assert newest_again["written_by"] == ["here:4711"], "it names the writer of the superseded rows"


def test_history_of_a_shard_that_was_never_read_has_no_buckets(world: World, commands: Commands) -> None:
    commands.topic = MemoryTopic(world, world)
    assert commands.text("offsets", "history", "1")[:2] == (ExitCode.OK, "Shard 1 was never read.\n")


# Rewind.


def test_a_rewind_without_yes_shows_what_would_be_read_again_and_does_nothing(world: World, commands: Commands) -> None:
    before = world.manifest()
    code, document = commands.json("offsets", "rewind", "0", "--to-bucket", str(FIRST + 1))
    assert code == ExitCode.USAGE, "a script that forgot --yes must not regard it as done"
    assert document == {
        "shard": "metrics/0",
        "bucket": FIRST + 1,
        "last_bucket": FIRST + 2,
        "time": "1970-02-11T17:00:00Z",
        "until": "1970-02-11T19:00:00Z",
        "offset": 1,
        "behind": 3,
        "buckets": 2,
        "records": 2,
        "samples": 2 * len(METRICS),
        "rows": 8,
        "done": False,
    }
    assert world.manifest() == before
    code, out, _ = commands.text("offsets", "rewind", "0", "--to-bucket", str(FIRST + 1))
    assert "Shard metrics/0 reads again from offset 1, the start of" in out
    assert "8 manifest rows would be superseded. Nothing was changed: add --yes to do it." in out


@pytest.mark.parametrize(
    "target", [["--to-bucket", str(FIRST + 1)], ["--to-offset", "1"], ["--to-time", A_TIME]], ids=lambda entry: entry[0]
)
def test_a_rewind_with_yes_is_done_and_the_next_start_reads_again(
    world: World, commands: Commands, target: list[str]
) -> None:
    code, document = commands.json("offsets", "rewind", "0", *target, "--yes")
    assert (code, document["done"], document["rows"]) == (ExitCode.OK, True, 8)
    assert superseded(world) == {FIRST + 1, FIRST + 2}
    assert world.manifest().state.seen_at is None
    world.start()
    assert world.running.position == 1
    world.settle()
    world.check_all_found()
    assert world.is_active()


def test_a_repeated_rewind_is_reported_and_does_not_take_the_shard(world: World, commands: Commands) -> None:
    commands.text("offsets", "rewind", "0", "--to-offset", "1", "--yes")
    before = world.manifest()
    code, out, _ = commands.text("offsets", "rewind", "0", "--to-offset", "1", "--yes")
    assert code == ExitCode.OK
    assert "Nothing to do" in out
    assert world.manifest() == before


def test_a_rewind_is_refused_while_the_owner_is_live_unless_take_is_given(world: World, commands: Commands) -> None:
    owner = running_process()
    take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, owner, by_force=True)
    code, document = commands.json("offsets", "rewind", "0", "--to-offset", "1", "--yes")
    assert (code, document["error"]["type"]) == (ExitCode.FENCED, "StillOwned")
    assert f"process {os.getppid()} on " in document["error"]["message"]
    assert superseded(world) == set()
    assert commands.text("offsets", "rewind", "0", "--to-offset", "1", "--yes", "--take")[0] == ExitCode.OK
    assert superseded(world) == {FIRST + 1, FIRST + 2}


def test_a_rewind_takes_a_shard_without_heartbeats_for_a_term(world: World, commands: Commands) -> None:
    elsewhere = FakeProcess("another-host/boot/namespace/1/0", set())
    take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, elsewhere, by_force=True)
    before = world.clock.monotonic()
    assert commands.text("offsets", "rewind", "0", "--to-offset", "1", "--yes")[0] == ExitCode.OK
    assert world.clock.monotonic() - before >= OWNER_TIMEOUT_S


def test_an_impossible_rewind_does_not_take_the_shard(world: World, commands: Commands) -> None:
    owner = take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, by_force=True)
    world.log.delete_before(2)
    code, document = commands.json("offsets", "rewind", "0", "--to-offset", "1", "--yes", "--take")
    assert (code, document["error"]["type"]) == (ExitCode.FAILED, "RewindRefused")
    assert f"bucket {FIRST + 2}, offset 2" in document["error"]["remedy"]
    world.sqlite.touch(owner, world.clock.now_ms(), 1)


def test_a_rewind_that_loses_the_shard_has_its_own_exit_code(world: World, commands: Commands) -> None:
    def overtake(call: StoreCall) -> None:
        if call.name == "commit":
            take_shard(world.sqlite, world.options.shard, "topic-1", world.clock, by_force=True)

    world.store.before = overtake
    code, document = commands.json("offsets", "rewind", "0", "--to-offset", "1", "--yes")
    assert (code, document["error"]["type"]) == (ExitCode.FENCED, "RewindFenced")
    assert superseded(world) == set()


def test_a_rewind_of_an_unread_partition_is_refused(world: World, commands: Commands) -> None:
    commands.topic = MemoryTopic(world, world)
    code, document = commands.json("offsets", "rewind", "1", "--to-offset", "0")
    assert (code, document["error"]["type"]) == (ExitCode.FAILED, "RewindRefused")
    assert world.sqlite.state(replace(world.options.shard, shard=1)) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0"], "Give exactly one of --to-time, --to-offset and --to-bucket"),
        (["0", "--to-offset", "1", "--to-bucket", "2"], "Give exactly one of --to-time, --to-offset and --to-bucket"),
        (["0", "--to-offset", "-1"], "-1 is not in the range x>=0"),
        (["0", "--to-time", "2026-11-15T10:00Z"], "'2026-11-15T10:00Z' has a time zone"),
        (["0", "--to-time", "yesterday"], "'yesterday' is not a time"),
        ([], "Missing argument 'SHARD'"),
    ],
)
def test_an_invalid_command_line_sends_no_request(commands: Commands, arguments: list[str], message: str) -> None:
    code, _, err = commands.text("offsets", "rewind", *arguments)
    assert code == ExitCode.USAGE
    assert message in err
    assert commands.openings == 0


def test_the_help_explains_the_exit_codes(commands: Commands) -> None:
    out = commands.text("offsets", "rewind", "--help")[1]
    for code in (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.FENCED):
        assert f"    {code.value:<4}{EXIT_CODES[code]}\n" in out
    for option in ("--to-time", "--to-offset", "--to-bucket", "--yes", "--take"):
        assert option in out


# The source.


def test_a_dataset_that_is_not_in_the_store_is_refused(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_DATASET__NAME", "other")
    code, document = commands.json("offsets", "show")
    assert (code, document["error"]["type"]) == (ExitCode.FAILED, "NoSuchDataset")
    assert "dataset 'other' is not in the store" in document["error"]["message"]


def test_showing_offsets_does_not_create_a_store(tmp_path: Path, world: World) -> None:
    settings = Settings(shard=ShardSettings(data_dir=tmp_path / "none"), store=StoreSettings(kind="sqlite"))
    with pytest.raises(NoSuchDataset, match="does not exist"), open_deployment(settings, {}, world.clock):
        pass
    assert not (tmp_path / "none").exists()


def test_the_dataset_s_own_interval_and_groups_override_the_settings(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRANDLINE_DATASET__FLUSH_INTERVAL", "5m")
    monkeypatch.setenv("STRANDLINE_DATASET__GROUPS", "7")
    document = commands.json("offsets", "history", "0")[1]
    assert (document["groups"], document["buckets"][0]["time"]) == (4, "1970-02-11T18:00:00Z")

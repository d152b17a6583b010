"""`strandline ready`, without servers."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from strandline.errors import ExitCode
from strandline.node.cli.exit_codes import EXIT_CODES
from strandline.node.settings import load
from strandline.recovery.offset_policy import Accepted
from strandline.store.protocol import StoreUnavailable
from support.offsets_commands import Commands, MemoryTopic, commands_over
from support.shard_world import HOUR, START, StoreCall, World, group_fails, no_fault, other_group, produce_everywhere

pytestmark = pytest.mark.unit

FIRST = START // HOUR
HOURS = [f"1970-02-11T{hour}" for hour in range(16, 20)]  # From the first on.


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
    """A running shard that has stored two hours."""
    with closing(World(tmp_path)) as started:
        started.start()
        for hour in range(2):
            produce_everywhere(started, str(hour))
            started.pass_hours(1)
        yield started


@pytest.fixture
def commands(world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Commands:
    return commands_over(world, monkeypatch, capsys)


def test_a_ready_hour_is_reported_with_its_revision(world: World, commands: Commands) -> None:
    assert commands.text("ready", HOURS[0]) == (
        ExitCode.OK,
        f"{HOURS[0]} is ready, revision 0, late samples: 0\n",
        "",
    )
    world.produce(("m", "late", START, 1.0), ("m", "late", START + 1, 1.0))
    world.pass_hours(1)
    code, document = commands.json("ready", HOURS[0])
    assert (code, document["ready"]) == (ExitCode.OK, True)
    readiness = document["readiness"]
    assert (readiness["verdict"], readiness["revision"], readiness["late_samples"]) == ("ready", 1, 2)
    assert (readiness["behind"], readiness["losses"]) == ([], [])


def test_an_hour_that_is_not_ready_has_its_own_exit_code_and_lists_partitions_behind(
    world: World, commands: Commands
) -> None:
    stuck = other_group(world)
    world.store.before = group_fails(stuck)
    world.pass_hours(1)
    world.store.before = no_fault
    code, document = commands.json("ready", HOURS[2])
    assert (code, document["ready"]) == (ExitCode.NOT_READY, False)
    assert code == 6
    assert document["readiness"]["behind"] == [
        {
            "shard": 0,
            "needed_bucket": FIRST + 2,
            "reached_bucket": FIRST + 1,
            "missing_groups": [stuck],
            "behind_ms": HOUR,
        }
    ]
    code, out, err = commands.text("ready", HOURS[2])
    assert (code, err) == (ExitCode.NOT_READY, "")
    lines = out.splitlines()
    assert lines[0] == f"{HOURS[2]} is not ready."
    assert lines[2].split() == ["0", str(FIRST + 1), str(FIRST + 2), str(stuck), "1h"]


def test_a_day_is_checked_like_an_hour(commands: Commands) -> None:
    code, out, _ = commands.text("ready", "1970-02-11")
    assert code == ExitCode.NOT_READY
    assert out.splitlines()[:2] == [
        "1970-02-11 is not ready.",
        "2 of 24 hours are ready; first that is not: 1970-02-11T00",
    ]


def test_hours_before_the_first_record_or_the_history_are_unknown_and_never_ready(
    world: World, commands: Commands
) -> None:
    code, out, _ = commands.text("ready", "1970-02-11T03")
    assert code == ExitCode.NOT_READY
    assert out.splitlines() == [
        "1970-02-11T03 is unknown: no partition was read yet.",
        "Partitions that were first read later and do not count: 0",
    ]
    world.pass_time(400 * 24 * HOUR)
    code, out, _ = commands.text("ready", "1970-02-11T03")
    assert code == ExitCode.NOT_READY
    assert "never read" in out, "all rows have expired"


def test_an_accepted_loss_is_reported(world: World, commands: Commands) -> None:
    produce_everywhere(world, "lost")
    world.read_all()
    world.crash()
    world.log.delete_before(3)
    world.start(accepted=Accepted(loss_to=3))
    # The loss has closed the hour's bucket, so that the rest of the hour is in the next one.
    world.pass_hours(2)
    code, out, _ = commands.text("ready", HOURS[2])
    assert code == ExitCode.OK
    assert f"Partition 0: accepted loss of offsets from 2 up to 3 (deleted), in bucket {FIRST + 2}." in out


def test_a_partition_that_was_never_owned_is_behind(world: World, commands: Commands) -> None:
    commands.topic = MemoryTopic(world, world)
    code, out, _ = commands.text("ready", HOURS[0])
    assert code == ExitCode.NOT_READY
    assert out.splitlines()[2].split() == ["1", "never", "read", str(FIRST), "all", "-"]


def test_late_samples_that_a_rewind_made_unavailable_are_reported(world: World, commands: Commands) -> None:
    world.produce(("m", "late", START, 1.0))
    world.pass_hours(1)
    world.running.close()
    world.crash()
    assert commands.text("offsets", "rewind", "0", "--to-bucket", str(FIRST + 2), "--yes")[0] == ExitCode.OK
    code, out, _ = commands.text("ready", HOURS[0])
    assert code == ExitCode.OK
    assert out.splitlines() == [
        f"{HOURS[0]} is ready, revision 1, late samples: 1",
        "Late samples that are unavailable until a rewind has read them again: 1",
    ]


def test_waiting_ends_as_soon_as_the_hour_is_ready(
    world: World, commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = world.clock.sleep

    def work_meanwhile(seconds: float) -> None:
        slept(seconds)
        world.settle()

    monkeypatch.setattr(world.clock, "sleep", work_meanwhile)
    before = world.clock.monotonic()
    assert commands.text("ready", HOURS[2], "--wait", "36000")[0] == ExitCode.OK
    assert HOUR / 2 < (world.clock.monotonic() - before) * 1000 < HOUR + 60_000


def test_waiting_ends_at_its_timeout(world: World, commands: Commands) -> None:
    before = world.clock.monotonic()
    assert commands.text("ready", HOURS[2], "--wait", "90")[0] == ExitCode.NOT_READY
    assert 90 <= world.clock.monotonic() - before < 91
    assert commands.text("ready", HOURS[2])[0] == ExitCode.NOT_READY
    assert world.clock.monotonic() - before < 91, "without --wait the command does not wait"


def test_an_unknown_hour_is_not_waited_for(world: World, commands: Commands) -> None:
    before = world.clock.monotonic()
    assert commands.text("ready", "1970-02-11T03", "--wait", "90")[0] == ExitCode.NOT_READY
    assert world.clock.monotonic() == before


def test_retryable_errors_are_retried_and_raised_at_the_timeout(world: World, commands: Commands) -> None:
    calls = 0

    def fail_twice(call: StoreCall) -> None:
        nonlocal calls
        calls += call.name == "manifest"
        if call.name == "manifest" and calls <= 2:
            raise StoreUnavailable("no answer")

    world.store.before = fail_twice
    assert commands.text("ready", HOURS[1], "--wait", "60")[0] == ExitCode.OK
    assert calls == 3
    world.log.reachable = False
    code, document = commands.json("ready", HOURS[0], "--wait", "60")
    assert (code, document["error"]["type"]) == (ExitCode.FAILED, "LogUnreachable")


def test_only_rows_from_the_hour_on_are_read_where_that_is_enough(world: World, commands: Commands) -> None:
    world.pass_hours(3)
    reads: list[tuple[object, ...]] = []
    store = world.sqlite
    real = store.manifest

    def note(shard: object, *, first: int | None = None, last: int | None = None) -> object:
        reads.append((first, last))
        return real(shard, first=first, last=last)  # type: ignore[arg-type]  # as it came

    world.sqlite.manifest = note  # type: ignore[method-assign,assignment]  # for this test
    try:
        assert commands.text("ready", "1970-02-11T19")[0] == ExitCode.OK
        assert reads == [(FIRST + 1, None)]
        reads.clear()
        assert commands.text("ready", HOURS[0])[0] == ExitCode.OK
        assert reads == [(FIRST - 2, None), (None, None)], "there are no rows before the first record"
    finally:
        world.sqlite.manifest = real  # type: ignore[method-assign]  # as it was


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["2026-11-15T10Z"], "has a time zone"),
        (["2026-11-15T10:30"], "has minutes"),
        (["yesterday"], "neither an hour nor a day"),
        ([], "Missing argument 'HOUR|DAY'"),
        (["2026-11-15", "--wait", "-1"], "-1.0 is not in the range x>=0"),
    ],
)
def test_an_invalid_command_line_sends_no_request(commands: Commands, arguments: list[str], message: str) -> None:
    code, _, err = commands.text("ready", *arguments)
    assert code == ExitCode.USAGE
    assert message in err
    assert commands.openings == 0


def test_the_help_explains_the_exit_codes(commands: Commands) -> None:
    out = commands.text("ready", "--help")[1]
    for code in (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_READY):
        assert f"    {code.value:<4}{EXIT_CODES[code]}\n" in out

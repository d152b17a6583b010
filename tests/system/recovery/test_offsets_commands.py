"""`strandline offsets` and `strandline ready` on the real stack, as operators use them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.bench.shard_process import ShardProcess
from strandline.node.stack import Stack
from strandline.recovery.periods import utc_text
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.deployment import GROUPS, HOUR, Deployment

pytestmark = pytest.mark.system

HOURS, RECORDS, SERIES = 4, 5, 20
ALL = HOURS * RECORDS + 1


@pytest.fixture
def deployment(stack: Stack, tmp_path: Path) -> Iterator[Deployment]:
    deployed = Deployment(stack, tmp_path, replay={"mode": "direct"})
    with closing(deployed.store):
        yield deployed


class Hours:
    """Complete hours in the past, with records in each; the last record has a sample of the first hour."""

    def __init__(self, deployment: Deployment) -> None:
        deployment.produce_hours(HOURS, records=RECORDS, series=SERIES)
        self.first = min(time for _, time in deployment.produced[0]) // HOUR
        late = self.first * HOUR + 7
        body = encode_request([Series([("__name__", "metric_1"), ("number", "late")], [(late, 1.0)])])
        deployment.put(0, compress(body), (self.first + HOURS) * HOUR - 1)
        deployment.produced[0][SERIES, late] = 1.0
        deployment.flush()

    def name(self, number: int) -> str:
        """The hour as an argument of `strandline ready`."""
        return utc_text((self.first + number) * HOUR)[: len("2026-11-15T10")]


def run_until_stored(deployment: Deployment) -> ShardProcess:
    """A shard that has stored every complete hour. The caller stops it."""
    process = deployment.start()
    try:
        process.wait_for("all is stored", lambda status: status["checkpoint"] >= ALL and status["phase"] == "active")
    except BaseException:
        process.kill()
        raise
    return process


def text_of(deployment: Deployment, *arguments: str) -> str:
    """The human-readable output of a command."""
    script = Path(sys.executable).with_name("strandline")
    command = [sys.executable, str(script), *arguments, "--config", str(deployment.settings)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout


def check_plan_of_a_rewind(deployment: Deployment, hours: Hours) -> None:
    """`recover plan` after the last two hours were rewound."""
    rewound = deployment.store.manifest(deployment.shard())
    code, document = deployment.command("recover", "plan")
    (shard,) = document["shards"]
    assert (code, shard["problem"], shard["reads_from"], shard["log_end"]) == (ExitCode.OK, "", 2 * RECORDS, ALL)
    assert [(job["bucket"], job["start"], job["end"]) for job in shard["jobs"]] == [
        (hours.first + 2, 2 * RECORDS, 3 * RECORDS),
        (hours.first + 3, 3 * RECORDS, ALL),
    ]
    assert (document["records"], shard["tail"], shard["new_cuts"]) == (2 * RECORDS + 1, 0, 0)
    assert deployment.command("recover", "plan", "--shard", "1")[0] == ExitCode.USAGE
    assert deployment.store.manifest(deployment.shard()) == rewound, "a plan takes no shard and writes nothing"


def test_hours_are_ready_once_stored_not_after_a_rewind_and_then_ready_again(deployment: Deployment) -> None:
    hours = Hours(deployment)
    rewind = ("offsets", "rewind", "0", "--to-time", hours.name(2))
    process = run_until_stored(deployment)
    try:
        code, document = deployment.command("offsets", "show")
        (shard,) = document["shards"]
        assert (code, document["dataset"], document["partitions"]) == (ExitCode.OK, deployment.name, 1)
        assert shard["seen_ms_ago"] is not None
        assert (shard["log_start"], shard["log_end"], shard["lag"]) == (0, ALL, 0)
        assert {shard["checkpoints"][name] for name in ("lowest", "highest", "index")} == {ALL}
        assert document["newest_ready_hour"] >= hours.name(HOURS - 1)

        code, document = deployment.command("ready", hours.name(0))
        assert (code, document["ready"]) == (ExitCode.OK, True)
        assert (document["readiness"]["revision"], document["readiness"]["late_samples"]) == (1, 1)
        code, document = deployment.command("ready", hours.name(HOURS + 5), "--wait", "1")
        assert (code, document["ready"]) == (ExitCode.NOT_READY, False)
        assert [shard["shard"] for shard in document["readiness"]["behind"]] == [0]

        code, document = deployment.command(*rewind, "--yes")
        assert (code, document["error"]["type"]) == (ExitCode.FENCED, "StillOwned")
        assert process.terminate() == ExitCode.OK
    finally:
        process.kill()

    before = deployment.store.manifest(deployment.shard())
    code, document = deployment.command(*rewind)
    assert (code, document["done"], document["bucket"], document["offset"]) == (
        ExitCode.USAGE,
        False,
        hours.first + 2,
        2 * RECORDS,
    )
    assert document["samples"] == 2 * RECORDS * SERIES + 1
    assert deployment.store.manifest(deployment.shard()) == before
    code, document = deployment.command(*rewind, "--yes")
    assert (code, document["done"]) == (ExitCode.OK, True)

    assert text_of(deployment, "ready", hours.name(1)) == f"{hours.name(1)} is ready, revision 0, late samples: 0\n"
    assert deployment.command("ready", hours.name(2))[0] == ExitCode.NOT_READY
    buckets = {bucket["bucket"]: bucket for bucket in deployment.command("offsets", "history", "0")[1]["buckets"]}
    assert [buckets[hours.first + number]["superseded_groups"] for number in range(HOURS)] == [0, 0, GROUPS, GROUPS]
    assert [buckets[hours.first + number]["records"] for number in range(HOURS)] == [RECORDS] * 3 + [RECORDS + 1]

    check_plan_of_a_rewind(deployment, hours)
    again = run_until_stored(deployment)
    try:
        assert again.status()["counters"]["records"] == 2 * RECORDS + 1, "only rewound records are read again"
        assert again.status()["keys"] == SERIES + 1
        assert deployment.command("ready", hours.name(2))[0] == ExitCode.OK
        deployment.check_stored()
    finally:
        again.kill()


def test_a_rewind_by_force_stops_the_owner_and_its_next_start_reads_again(deployment: Deployment) -> None:
    hours = Hours(deployment)
    process = run_until_stored(deployment)
    try:
        code, document = deployment.command(
            "offsets", "rewind", "0", "--to-offset", str(RECORDS + 1), "--yes", "--take"
        )
        assert (code, document["error"]["type"]) == (ExitCode.FAILED, "RewindRefused")
        assert f"the offsets {RECORDS} and {2 * RECORDS}" in document["error"]["remedy"]
        assert process.status()["phase"] == "active", "an impossible rewind does not take the shard from its owner"
        code, document = deployment.command("offsets", "rewind", "0", "--to-offset", "0", "--yes", "--take")
        assert (code, document["rows"] % GROUPS, document["records"]) == (ExitCode.OK, 0, ALL)
        assert process.wait() == ExitCode.FENCED
    finally:
        process.kill()
    assert "is not ready" in text_of(deployment, "ready", hours.name(0))
    again = run_until_stored(deployment)
    try:
        deployment.check_stored()
    finally:
        again.kill()

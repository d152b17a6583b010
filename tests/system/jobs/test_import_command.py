"""`strandline job import` on a real stack: processes of each kind are killed, and each sample lands once. Samples are
counted in the topic by job, part and chunk, because the answers of a node would hide duplicates.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from secrets import randbelow
from typing import Any

import numpy as np
import pytest
from soak_jobs.soak import Soak, SoakOptions

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode
from strandline.node.stack import Stack
from support.committed_topic import CommittedTopic
from support.deployment import BROKERS_TIMES, HOUR, Deployment

pytestmark = pytest.mark.system

CLOCK = SystemClock()
ROWS, SERIES = 200_000, 500
BAD_EVERY = 1_000
MAPPING = """
metric = "cpu_usage"
value = "usage"
time = {column = "at", unit = "ms"}
labels = ["host"]
"""


@pytest.fixture(scope="module")
def deployment(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    folder = tmp_path_factory.mktemp("imports")
    # The file has about six such parts.
    chosen = {"part_bytes": "1m"}
    return Deployment(stack, folder, partitions=2, keyspace="imports", topic=BROKERS_TIMES, jobs=chosen)


@pytest.fixture(scope="module")
def source(deployment: Deployment) -> Sequence[str]:
    first = CLOCK.now_ms() - HOUR
    lines = ["at,host,usage"]
    for row in range(ROWS):
        value = "?" if row % BAD_EVERY == BAD_EVERY - 1 else f"{row}.25"
        lines.append(f"{first + row},host-{row % SERIES},{value}")
    (deployment.folder / "data.csv").write_text("\n".join(lines))
    (deployment.folder / "mapping.toml").write_text(MAPPING)
    return (
        str(deployment.folder / "data.csv"),
        "--format",
        "csv",
        "--mapping",
        str(deployment.folder / "mapping.toml"),
    )


def topic_of(deployment: Deployment) -> CommittedTopic:
    return CommittedTopic(deployment.kafka, deployment.name, deployment.partitions)


def started(deployment: Deployment, *arguments: str) -> "subprocess.Popen[bytes]":
    script = Path(sys.executable).with_name("strandline")
    command = [sys.executable, str(script), "job", *arguments, "--config", str(deployment.settings)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def jobs(deployment: Deployment) -> list[dict[str, Any]]:
    code, listed = deployment.command("job", "list")
    assert code == 0
    return list(listed["jobs"])


def test_an_import_survives_kills_of_worker_gateway_node_executor_and_driver(stack: Stack, tmp_path: Path) -> None:
    options = SoakOptions(
        randbelow(1_000_000),
        kills=5,
        samples=ROWS,
        limit_s=300,
        max_pause_s=0.5,
        spark=True,
        seconds_per_kill=60,
        chunk_bytes="64k",
        is_each_once=True,
    )
    lines: list[str] = [f"seed {options.seed}"]
    report = Soak(stack, tmp_path, options, lines.append).run()
    assert report.passed, (lines, report)
    assert set(report.kills.values()) == {1}
    assert len(report.kills) == 5
    assert (report.count.in_topic, report.parts >= 5) == (ROWS - ROWS // BAD_EVERY, True)
    assert report.load_acknowledged


def test_a_job_is_paused_resumed_cancelled_and_deleted(deployment: Deployment, source: Sequence[str]) -> None:
    topic = topic_of(deployment)
    before, known = topic.ends(), {job["job"] for job in jobs(deployment)}
    # The first chunk lands immediately, and the next one minutes later.
    process = started(deployment, "import", *source, "--rate", "500")
    assert wait_until(lambda: topic.ends() > before, timeout=60, clock=CLOCK, poll=0.05)
    (name,) = {job["job"] for job in jobs(deployment)} - known
    code, paused = deployment.command("job", "pause", name)
    assert (code, paused["state"], paused["rate"]) == (ExitCode.OK, "paused", 500)
    process.wait(60)
    landed = topic.samples_of(name).sorted()
    assert 0 < len(landed) < ROWS - ROWS // BAD_EVERY
    assert deployment.command("job", "delete", name, "--yes")[0] == ExitCode.USAGE
    assert deployment.command("job", "resume", name)[1]["state"] == "running"
    code, cancelled = deployment.command("job", "cancel", name)
    assert (code, cancelled["state"]) == (ExitCode.OK, "cancelled")
    assert deployment.command("job", "resume", name)[0] == ExitCode.USAGE
    assert topic.samples_of(name).sorted() == landed
    assert deployment.command("job", "delete", name, "--yes")[0] == ExitCode.OK
    assert name not in {job["job"] for job in jobs(deployment)}


def test_a_dry_run_shows_what_would_be_imported(deployment: Deployment, source: Sequence[str]) -> None:
    known = len(jobs(deployment))
    code, plan = deployment.command("job", "import", *source, "--plan")
    assert code == ExitCode.OK
    assert (plan["files"][0]["uri"], plan["bytes"]) == (source[0], Path(source[0]).stat().st_size)
    code, preview = deployment.command("job", "import", *source, "--preview", "2")
    assert [sample[0] for sample in preview["samples"]] == [
        '{__name__="cpu_usage", host="host-0"}',
        '{__name__="cpu_usage", host="host-1"}',
    ]
    assert np.array_equal([sample[2] for sample in preview["samples"]], [0.25, 1.25])
    assert len(jobs(deployment)) == known
    code, refused = deployment.command("job", "import", str(deployment.folder), "--format", "jsonl")
    assert code == ExitCode.FAILED
    assert "is a directory" in json.dumps(refused)

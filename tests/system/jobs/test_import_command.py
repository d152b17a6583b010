"""`strandline job import` on a real Kafka and a real Cassandra: workers are killed, and each sample lands once.

Samples are counted in the topic by job, part and chunk: reading them back from a node would hide doubles, since equal
samples fall together.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode
from strandline.node.stack import Stack
from support.committed_topic import CommittedTopic
from support.deployment import BROKERS_TIMES, HOUR, Deployment

pytestmark = pytest.mark.system

CLOCK = SystemClock()
ROWS, SERIES = 200_000, 500
BAD_EVERY = 1_000
KILLS = 5
MAPPING = """
metric = "cpu_usage"
value = "usage"
time = {column = "at", unit = "ms"}
labels = ["host"]
"""


@pytest.fixture(scope="module")
def deployment(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    # Parts of a megabyte, of which the file has some six; leases of workers that were killed are taken back at once.
    folder = tmp_path_factory.mktemp("imports")
    # A part may lose all of the workers that are killed.
    chosen = {"part_bytes": "1m", "failures_allowed": KILLS}
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


def expected(source: Sequence[str]) -> list[tuple[int, float]]:
    rows = [line.split(",") for line in Path(source[0]).read_text().splitlines()[1:]]
    return sorted((int(at), float(value)) for at, _, value in rows if value != "?")


def wait_for_more(topic: CommittedTopic, process: "subprocess.Popen[bytes]") -> None:
    """Until more records are in the topic, be it in a transaction that is open, or the process has ended."""
    before = topic.ends()
    wait_until(lambda: topic.ends() > before or process.poll() is not None, timeout=60, clock=CLOCK, poll=0.01)


def test_workers_that_are_killed_lose_and_double_nothing(deployment: Deployment, source: Sequence[str]) -> None:
    topic = topic_of(deployment)
    # So slow that each worker is killed in the middle of its work. The first one is a driver of Spark, whose executors
    # live on for a moment; the others run parts themselves.
    process = started(deployment, "import", *source, "--rate", "40000", "--on", "spark")
    for _ in range(KILLS):
        wait_for_more(topic, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        (job,) = jobs(deployment)
        process = started(deployment, "work", job["job"], "--rate", "40000")
    assert process.wait(240) == ExitCode.OK
    code, status = deployment.command("job", "status", job["job"])
    assert (code, status["state"]) == (ExitCode.OK, "done")
    bad = ROWS // BAD_EVERY
    assert (status["parts_done"], status["parts"] >= 3) == (status["parts"], True)
    counts = status["counts"]
    assert (counts["records"], counts["samples"], counts["bad"]) == (ROWS, ROWS - bad, bad)
    assert topic.samples_of(job["job"]).sorted() == expected(source)
    assert status["bad_lines"][0]["record"]["line"] == 1 + BAD_EVERY
    # Whoever works on now finds nothing to do.
    assert deployment.command("job", "work")[1]["jobs"] == []
    assert topic.samples_of(job["job"]).sorted() == expected(source)


def test_a_job_is_paused_resumed_cancelled_and_deleted(deployment: Deployment, source: Sequence[str]) -> None:
    topic = topic_of(deployment)
    before, known = topic.ends(), {job["job"] for job in jobs(deployment)}
    # The first chunk lands at once, and the next one minutes later.
    process = started(deployment, "import", *source, "--rate", "500")
    assert wait_until(lambda: topic.ends() > before, timeout=60, clock=CLOCK, poll=0.05)
    (name,) = {job["job"] for job in jobs(deployment)} - known
    code, paused = deployment.command("job", "pause", name)
    assert (code, paused["state"]) == (ExitCode.OK, "paused")
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


def test_what_would_be_imported_is_shown_before(deployment: Deployment, source: Sequence[str]) -> None:
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

"""A backup of Cassandra that is taken while a shard writes, and restored after the loss of all data. The test runs the
commands of docs/operations.md verbatim.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.stack import Stack
from strandline.recovery.checkpoints import Progress, progress
from support.deployment import BROKERS_TIMES, GROUPS, Deployment
from support.own_cassandra import OwnCassandra, Servers
from support.shared_servers import options_of

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[3]
SERIES = 20
BLOCK = re.compile(r"^( *)```sh\n\1# (.*?)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def cassandra(tmp_path: Path) -> Iterator[OwnCassandra]:
    options = replace(options_of(tmp_path / "state"), cassandra_heap="512m")
    with closing(OwnCassandra(options, tmp_path / "tools")) as own:
        yield own


@pytest.fixture
def deployment(stack: Stack, cassandra: OwnCassandra, tmp_path: Path) -> Iterator[Deployment]:
    servers = Servers(stack.kafka_bootstrap, cassandra.stack.cassandra_host, cassandra.stack.cassandra_port)
    deployed = Deployment(
        servers,
        tmp_path,
        keyspace="strandline",
        topic=BROKERS_TIMES,
        dataset={"flush_interval": "2s", "retention": "6h", "kafka_retention": "2h"},
        replay={"mode": "direct"},
    )
    yield deployed
    deployed.store.close()


def documented(title: str) -> str:
    """The commands of docs/operations.md whose first line is a comment that begins with these words."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (found,) = [commands for _, first, commands in BLOCK.findall(page) if first.startswith(title)]
    return str(found)


class Operator:
    """Runs documented commands in a shell with Cassandra's tools."""

    def __init__(self, cassandra: OwnCassandra, backup: Path) -> None:
        names = {"TAG": "test", "DATA": str(cassandra.data), "BACKUP": str(backup), "COPIES": "'datacenter1': 1"}
        self._environment: Mapping[str, str] = cassandra.environment({**os.environ, **names})

    def begin(self, commands: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["/bin/sh", "-euc", commands],
            env=self._environment,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, commands: str) -> None:
        finish(self.begin(commands))


def finish(process: subprocess.Popen[str]) -> None:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output


class Writer:
    """Produces records with current samples continuously; every tenth adds a new series."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._clock = SystemClock()
        self._time = 0
        self.records = 0

    def write(self) -> None:
        self._time = max(self._time + 1, self._clock.now_ms())
        self._deployment.produce(0, self._time, [*range(SERIES), 1_000 + self.records // 10])
        self._deployment.flush()
        self.records += 1

    def write_while(self, condition: Callable[[], bool]) -> None:
        while condition():
            self.write()
            self._clock.sleep(0.05)


def progress_of(deployment: Deployment) -> Progress:
    manifest = deployment.store.manifest(deployment.shard())
    assert manifest is not None
    done = progress(manifest, GROUPS, deployment.shard())
    assert done is not None
    return done


def newest_bucket(deployment: Deployment) -> int:
    """The newest completely stored bucket."""
    return min(progress_of(deployment).stored_up_to)


def test_data_stored_after_a_backup_is_read_from_kafka_again_after_the_loss_of_cassandra(
    deployment: Deployment, cassandra: OwnCassandra, tmp_path: Path
) -> None:
    operator, writer = Operator(cassandra, tmp_path / "backup"), Writer(deployment)
    writer.write()
    process = deployment.start()
    try:
        process.wait_for("something is stored", lambda status: status["checkpoint"] > 0)
        first = newest_bucket(deployment)
        writer.write_while(lambda: newest_bucket(deployment) < first + 2)
        names = operator.begin(documented("take 1"))
        writer.write_while(lambda: names.poll() is None)
        finish(names)
        named = newest_bucket(deployment)
        writer.write_while(lambda: newest_bucket(deployment) < named + 2)
        data = operator.begin(documented("take 2"))
        writer.write_while(lambda: data.poll() is None)
        finish(data)
        operator.run(documented("take 3"))
        written = newest_bucket(deployment)
        writer.write_while(lambda: newest_bucket(deployment) < written + 2)
    finally:
        process.kill()
    deployment.store.close()

    cassandra.lose_everything()
    operator.run(documented("restore 1"))
    operator.run(documented("restore 2"))
    operator.run('cqlsh -e "TRUNCATE strandline.index_buckets"')
    operator.run(documented("one table"))
    deployment.reopen_store()
    restored = progress_of(deployment)
    assert first + 2 <= min(restored.stored_up_to) <= named, "the manifest at the time of the backup"
    again = deployment.start()
    try:
        again.wait_for("all is stored", lambda status: status["checkpoint"] >= writer.records)
        status = again.wait_for("it is active", lambda status: status["phase"] == "active")
        assert status["counters"]["records"] == writer.records - restored.resume_at, (
            "from the backup on, and nothing earlier"
        )
    finally:
        again.kill()
    assert again.log_text().count("loading the index from the store") == 2, "the local copy belongs to the lost store"
    deployment.check_stored()
    code, report = deployment.command("recover", "verify")
    assert (code, report["sound"]) == (ExitCode.OK, True), report

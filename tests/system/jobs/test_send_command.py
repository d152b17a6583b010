"""`strandline job send` and `strandline job verify` on a real Kafka, Cassandra and node: imported samples are read back
and compared, and messages are read from their topic. An import waits for shards that lag.
"""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.cli.main import main
from strandline.node.demo.programs import Program
from strandline.node.stack import Stack
from strandline.wire.encoding import Series, encode_request
from strandline.wire.record_headers import JOB_HEADER
from strandline.wire.snappy import compress
from support.service import Service, eventually, service

pytestmark = pytest.mark.system

CLOCK = SystemClock()
HOSTS, SAMPLES = 60, 20
MAPPING = """
metric = "load"
value = "load"
time = {column = "at", unit = "ms"}
labels = ["host", "tz"]
"""
TEMPLATE = """
key = "{host}"
headers = {metric = "{__name__}", zone = "{tz}"}
defaults = {tz = "none"}

[value]
host = "{host}"
load = "{$value}"
seen = "{$time}"
since = "{$start}"
"""


class World:
    """A service, a file to import, and a topic for messages."""

    def __init__(self, running: Service, stack: Stack, folder: Path) -> None:
        self.service, self.folder = running, folder
        self.client = {"bootstrap.servers": stack.kafka_bootstrap}
        self.topic = f"messages-{uuid4().hex[:8]}"
        # A reference is kept until the answer, because the request would be cancelled without it.
        admin = AdminClient(self.client)
        (made,) = admin.create_topics([NewTopic(self.topic, 3, 1)]).values()
        made.result(90)
        self.first = CLOCK.now_ms() - 60_000
        (folder / "mapping.toml").write_text(MAPPING)
        (folder / "template.toml").write_text(TEMPLATE)
        self.write_file()

    def write_file(self) -> None:
        zones = ("Europe/Berlin", "America/St_Johns", "Mars", "")
        rows = [
            f"{self.first + 1000 * at},host-{host},{zones[host % 4]},{host}.{at:02d}5"
            for at in range(SAMPLES)
            for host in range(HOSTS)
        ]
        (self.folder / "data.csv").write_text("\n".join(["at,host,tz,load", *rows]))

    def command(self, *arguments: str) -> tuple[int, Any]:
        """Run `strandline job` in this process. Returns the exit code and the printed document."""
        printed = io.StringIO()
        with redirect_stdout(printed):
            code = main(["job", *arguments, "--config", str(self.service.settings), "--output", "json"])
        return code, json.loads(printed.getvalue())

    def messages(self, job: str) -> list[SimpleNamespace]:
        """All messages of a job that readers of committed records see, including duplicates."""
        options = {
            **self.client,
            "group.id": uuid4().hex,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        found, at_end = [], set[int]()
        with closing(Consumer(options)) as consumer:
            consumer.assign([TopicPartition(self.topic, number, 0) for number in range(3)])
            while len(at_end) < 3:
                message = consumer.poll(60)
                assert message is not None
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    at_end.add(message.partition())
                elif (headers := dict(message.headers()))[JOB_HEADER] == job.encode():
                    value = json.loads(message.value())
                    found.append(SimpleNamespace(key=message.key(), value=value, headers=headers))
        return found


@pytest.fixture(scope="module")
def world(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("sends")
    jobs = {"events_folder": str(folder / "events"), "part_series": 100}
    with service(stack, folder / "service", replay={"mode": "direct"}, jobs=jobs, dataset={"retention": "2h"}) as made:
        yield World(made, stack, folder)


@pytest.fixture(scope="module")
def imported(world: World) -> str:
    """A finished import, whose series the node has indexed."""
    options = ("--format", "csv", "--mapping", str(world.folder / "mapping.toml"))
    code, status = world.command("import", str(world.folder / "data.csv"), *options)
    assert (code, status["state"]) == (ExitCode.OK, "done")
    eventually(lambda: len(world.service.node.data("/api/v1/series", match="load")) == HOSTS, "all series")
    return str(status["job"])


def test_an_import_is_read_back_and_compared_value_by_value(world: World, imported: str) -> None:
    event = json.loads((world.folder / "events" / f"{imported}.json").read_bytes())
    assert (event["kind"], event["counts"]["samples"]) == ("import", HOSTS * SAMPLES)
    code, found = world.command("verify", imported, "--all")
    assert (code, found["sound"]) == (ExitCode.OK, True)
    assert (found["imported"]["samples"], found["imported"]["series"]) == (HOSTS * SAMPLES, HOSTS)
    # A later sample with the same timestamp replaces an imported one.
    labels = [("__name__", "load"), ("host", "host-3")]
    body = compress(encode_request([Series(labels, [(world.first, -1.0)])]))
    world.service.gateway.post("/api/v1/write", body)
    eventually(
        lambda: (
            world.service.node.data("/api/v1/query", query='load{host="host-3"}', time=world.first / 1000)["result"][0][
                "value"
            ][1]
            == "-1"
        ),
        "the later sample",
    )
    code, found = world.command("verify", imported, "--all")
    assert code == ExitCode.VERIFY_FAILED
    assert (found["imported"]["different"], found["imported"]["missing"]) == (1, 0)
    (example,) = found["imported"]["examples"]
    assert (example["time"], example["sent"], example["found"]) == (world.first, 3.005, -1.0)


@contextmanager
def lagging(world: World) -> Iterator[None]:
    """A context with an open transaction in the dataset's topic, after which there is a sample that no shard
    may read.
    """
    dataset = world.service.node.data("/api/v1/strandline/shards")["dataset"]
    producer = Producer({**world.client, "transactional.id": uuid4().hex, "transaction.timeout.ms": 600_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in range(2):
        producer.produce(dataset, b"", partition=partition)
    assert producer.flush(60) == 0
    body = encode_request([Series([("__name__", "behind")], [(CLOCK.now_ms(), 1.0)])])
    world.service.gateway.post("/api/v1/write", compress(body))
    try:
        yield
    finally:
        producer.abort_transaction(60)


def test_an_import_waits_while_a_shard_lags_and_then_continues(world: World, imported: str) -> None:
    arguments = ("--format", "csv", "--mapping", str(world.folder / "mapping.toml"), "--config")
    command = ["job", "import", str(world.folder / "data.csv"), *arguments, str(world.service.settings)]
    log, environ = world.folder / "waiting.log", {**world.service.environ, "STRANDLINE_JOBS__MAX_LAG": "1s"}
    with lagging(world):
        lags = lambda: [shard["lag_s"] or 0 for shard in world.service.node.data("/api/v1/strandline/shards")["shards"]]  # noqa: E731
        eventually(lambda: max(lags()) > 1, "a shard that lags")
        worker = Program(command, log, environ=environ)
        eventually(lambda: "jobs wait for the shards" in worker.log_text(), "the import waits")
        # It would have landed with the first chunk, which is the complete file.
        (job,) = (job for job in world.command("list")[1]["jobs"] if job["job"] != imported)
        assert (job["state"], job["landed"], worker.exit_code) == ("running", 0, None)
    eventually(lambda: worker.exit_code is not None, "the import ends")
    assert worker.exit_code == ExitCode.OK, worker.log_text()
    assert "jobs continue" in worker.log_text()
    assert world.command("status", job["job"])[1]["landed"] == HOSTS * SAMPLES


def test_each_series_outside_the_control_sample_becomes_one_message(world: World, imported: str) -> None:
    assert imported
    template = ("--to", world.topic, "--template", str(world.folder / "template.toml"))
    code, status = world.command("send", "load", *template, "--control", "0.2", "--seed", "7")
    assert (code, status["state"], status["counts"]["records"]) == (ExitCode.OK, "done", HOSTS)
    name = status["job"]
    found = world.messages(name)
    with (world.folder / "events" / f"{name}.control.csv").open(newline="") as file:
        control = [row[0] for row in csv.reader(file)][1:]
    left_out = [host for host in range(HOSTS) if any(f'host="host-{host}"' in series for series in control)]
    assert 3 < len(left_out) == len(control) < 30
    sent = sorted(int(message.value["host"].removeprefix("host-")) for message in found)
    assert sent == sorted(set(range(HOSTS)) - set(left_out))
    last = world.first + 1000 * (SAMPLES - 1)
    for message in found:
        host = int(message.key.removeprefix(b"host-"))
        assert message.value == {"host": f"host-{host}", "load": host + 0.195, "seen": last, "since": world.first}
        assert message.headers["metric"] == b"load"
        assert message.headers["zone"] == (b"Europe/Berlin", b"America/St_Johns", b"Mars", b"none")[host % 4]
    code, verified = world.command("verify", name)
    assert (code, verified["sent"]) == (
        ExitCode.OK,
        {"parts": 1, "sent": len(found), "found": len(found), "wrong": []},
    )


def test_a_plan_shows_one_job_per_utc_offset_and_writes_nothing(world: World, imported: str) -> None:
    assert imported
    template = ("--template", str(world.folder / "template.toml"))
    local = ("--timezone-label", "tz", "--local-time", "09:00")
    code, plan = world.command("send", "load", "--to", world.topic, *template, *local, "--plan")
    assert (code, plan["series"]) == (ExitCode.OK, HOSTS)
    assert {tuple(job["zones"]) for job in plan["jobs"]} == {("America/St_Johns",), ("Europe/Berlin",)}
    assert plan["unknown_zones"] == ["Mars"]
    now = CLOCK.now_ms()
    assert all(now < job["due_at"] < now + 24 * 3_600_000 for job in plan["jobs"])
    code, refused = world.command("send", "load", "--to", "no-such-topic", *template)
    assert code == ExitCode.FAILED
    assert "no-such-topic" in json.dumps(refused)
    assert {job["state"] for job in world.command("list")[1]["jobs"]} == {"done"}

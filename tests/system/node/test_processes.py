"""The processes of a node: the failure of one does not affect the others. On a real Kafka, Cassandra and Spark."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.node.demo.programs import Program
from strandline.node.stack import Stack
from strandline.node.stack.ports import LOOPBACK, free_ports
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.deployment import Deployment
from support.prometheus import PrometheusClient
from support.service import Service, eventually, service
from support.stalling_proxy import StallingProxy

pytestmark = pytest.mark.system

CLOCK = SystemClock()
NODE = "/api/v1/strandline/shards"
ADMIN_TOKEN = "an-admin-token-of-a-test"
HANG_AFTER_S = 5
# On two idle cores, the front is back after 1.5 to 2 s, mostly for Python's imports. The rest is for busy machines.
BACK_S = 15.0


@pytest.fixture(scope="module")
def running(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("processes")
    token = folder / "admin-token"
    token.write_text(ADMIN_TOKEN + "\n", encoding="utf-8")
    token.chmod(0o600)
    http, node = {"admin_token_file": str(token)}, {"hang_after": f"{HANG_AFTER_S}s"}
    kafka = {"request_timeout": "4s"}
    with service(stack, folder / "service", replay={"mode": "direct"}, node=node, http=http, kafka=kafka) as made:
        yield made


def process(node: PrometheusClient, name: str) -> dict[str, Any]:
    (found,) = [process for process in node.data(NODE)["processes"] if process["name"] == name]
    return dict(found)


def shard_pids(node: PrometheusClient) -> list[int]:
    return [shard["pid"] for shard in node.data(NODE)["shards"]]


class Writer:
    """Writes one series after the other through the gateway until the context ends."""

    def __init__(self, gateway: PrometheusClient, name: str) -> None:
        self.written, self.failures = 0, list[str]()
        self._gateway, self._name, self._leave = gateway, name, threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._leave.is_set():
            labels = [("__name__", self._name), ("number", str(self.written))]
            try:
                body = compress(encode_request([Series(labels, [(CLOCK.now_ms(), 1.0)])]))
                self._gateway.post("/api/v1/write", body)
                self.written += 1
            except (OSError, AssertionError) as error:
                self.failures.append(repr(error))


def test_a_front_that_is_killed_under_load_restarts_without_affecting_ingestion(running: Service) -> None:
    node = running.node
    shards, front = shard_pids(node), process(node, "front")
    with Writer(running.gateway, "while_killed") as writer:
        eventually(lambda: node.data("/api/v1/series", match="while_killed"), "what is written is found")
        os.kill(front["pid"], signal.SIGKILL)
        killed, before = CLOCK.monotonic(), writer.written
        # No client is refused: connections wait in the backlog for the next front.
        assert node.request("/api/v1/labels")[0] == 200
        took = CLOCK.monotonic() - killed
        away = writer.written
        assert away > before, "writes continued meanwhile"
    assert not writer.failures
    assert took < BACK_S
    assert shard_pids(node) == shards
    eventually(
        lambda: len(node.data("/api/v1/series", match="while_killed", limit=100_000)) == writer.written,
        "everything written is found",
    )
    again = process(node, "front")
    assert again["pid"] != front["pid"]
    assert again["restarts"] == front["restarts"] + 1
    assert [shard["restarts"] for shard in node.data(NODE)["shards"]] == [0, 0]
    assert f'strandline_process_restarts_total{{process="front"}} {again["restarts"]}' in metrics(node)


def metrics(node: PrometheusClient) -> str:
    return node.request("/metrics")[1].decode()


def test_a_suspended_front_is_replaced(running: Service) -> None:
    node = running.node
    shards, front = shard_pids(node), process(node, "front")
    os.kill(front["pid"], signal.SIGSTOP)
    stopped = CLOCK.monotonic()
    # It waits in the backlog, or in the suspended process, whose end closes the connection.
    eventually(lambda: answers(node), "another front answers")
    assert CLOCK.monotonic() - stopped >= HANG_AFTER_S / 2
    assert process(node, "front")["pid"] != front["pid"]
    assert shard_pids(node) == shards


def answers(node: PrometheusClient) -> bool:
    try:
        return node.request("/-/healthy")[0] == 200
    except (OSError, AssertionError):
        return False


def test_a_shard_is_restarted_and_settings_are_reloaded_through_the_front(running: Service) -> None:
    node, before = running.node, shard_pids(running.node)

    def order(path: str) -> tuple[int, bytes]:
        return node.request(path, method="POST", headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})

    assert order(f"{NODE}/0/restart")[0] == 202
    eventually(lambda: shard_pids(node)[0] not in (None, before[0]), "shard 0 has another process")
    running.wait_until_ready()
    assert shard_pids(node)[1] == before[1]
    assert order(f"{NODE}/9/restart")[0] == 404
    text = running.settings.read_text()
    try:
        running.settings.write_text(text + '\n[query]\nmax_series = 12345\nlookback = "4m"\n')
        status, body = order("/-/reload")
        assert (status, json.loads(body)["data"]["changed"]) == (
            200,
            {"at once": ["query.lookback", "query.max_series"]},
        )
        running.settings.write_text("no toml at all")
        assert order("/-/reload")[0] == 500
        assert answers(node)
    finally:
        running.settings.write_text(text)


def test_an_address_in_use_is_reported_immediately() -> None:
    # A short path, because the node's sockets are in it.
    with tempfile.TemporaryDirectory() as folder, socket.create_server((LOOPBACK, 0)) as taken:
        environ = {**os.environ, "STRANDLINE_HTTP__NODE_ADDRESS": f"{LOOPBACK}:{taken.getsockname()[1]}"}
        script = Path(sys.executable).with_name("strandline")
        ended = subprocess.run(
            [sys.executable, str(script), "node", "--output", "json"],
            env={**environ, "TMPDIR": folder},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert ended.returncode == ExitCode.FAILED
    assert "another process listens there" in json.loads(ended.stdout)["error"]["message"]


@contextmanager
def node_of(deployment: Deployment, address: str) -> Iterator[tuple[Program, PrometheusClient]]:
    program = Program(["node", "--config", str(deployment.settings)], deployment.folder / "node.log")
    try:
        program.wait_for_answer(address, "/-/healthy", CLOCK, timeout=60)
        yield program, PrometheusClient(address)
    finally:
        program.end()


@pytest.fixture
def address() -> str:
    return f"{LOOPBACK}:{free_ports(1)[0]}"


def replayed(node: PrometheusClient, shard: int) -> float:
    """The progress of a shard's replay."""
    found = node.data(NODE)["shards"][shard]
    return 1.0 if found["phase"] in ("catching-up", "active") else (found["progress"] or 0.0)


# Spark is slow on a busy machine.
@pytest.mark.timeout(600)
def test_a_replay_continues_after_kills_of_another_shard_and_of_the_worker(
    stack: Stack, tmp_path: Path, address: str
) -> None:
    # One job per wave, so that a kill interrupts the replay.
    deployment = Deployment(stack, tmp_path, partitions=2, replay={"wave_records": 1}, http={"node_address": address})
    for partition in (0, 1):
        deployment.produce_hours(3, records=50, series=200, partition=partition)
    with closing(deployment.store), node_of(deployment, address) as (_, node):
        eventually(lambda: process(node, "worker")["pid"] is not None, "the node starts a worker", timeout=120)
        worker, shards = process(node, "worker")["pid"], shard_pids(node)
        eventually(lambda: replayed(node, 0) + replayed(node, 1) > 0, "jobs get done", timeout=240)
        survivor = int(replayed(node, 1) > 0)
        killed = 1 - survivor
        os.kill(shards[killed], signal.SIGKILL)
        eventually(lambda: node.data(NODE)["shards"][killed]["restarts"] == 1, "the killed shard is started again")
        assert process(node, "worker")["pid"] == worker, "the worker does not depend on that shard"
        assert shard_pids(node)[survivor] == shards[survivor]
        before = replayed(node, survivor)
        eventually(lambda: replayed(node, survivor) > before or before == 1.0, "the replay continues", timeout=240)
        if (pid := process(node, "worker")["pid"]) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(node.is_ready, "both are active in the end", timeout=240)
        assert node.data(NODE)["shards"][survivor]["restarts"] == 0
        eventually(
            lambda: process(node, "worker")["process"] == "stopped", "the worker is no longer needed", timeout=240
        )
        for partition in (0, 1):
            deployment.check_stored(partition, before=deployment.this_hour)


def test_a_stop_while_cassandra_hangs_takes_a_limited_time(stack: Stack, tmp_path: Path, address: str) -> None:
    stop_timeout_s = 8
    with closing(StallingProxy(stack.cassandra_port)) as cassandra:
        deployment = Deployment(
            stack,
            tmp_path,
            partitions=2,
            cassandra={"port": cassandra.port},
            replay={"mode": "direct"},
            http={"node_address": address},
            node={"stop_timeout": f"{stop_timeout_s}s"},
        )
        deployment.produce_hours(1, records=2, series=5)
        with closing(deployment.store), node_of(deployment, address) as (program, node):
            eventually(node.is_ready, "it is ready", timeout=120)
            with cassandra.stalled():
                program.send(signal.SIGTERM)
                began = CLOCK.monotonic()
                assert program.wait(60) == ExitCode.OK
                assert CLOCK.monotonic() - began < stop_timeout_s + 3

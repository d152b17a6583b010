"""The front: all paths, reloads of the handlers, and admin verbs."""

import json
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from strandline.clock import Clock, ManualClock, SystemClock
from strandline.errors import Retryable
from strandline.node.front import NodeFront
from strandline.node.http.listening import bound_socket
from strandline.node.masking import SecretMask
from strandline.node.query.shard_link import ShardLink
from strandline.node.settings import Settings, load_settings
from strandline.node.settings.http_sections import HttpSettings
from strandline.node.settings.units import ByteSize
from strandline.node.status.processes import FRONT, ProcessState, ProcessStatus, ShardProcessStatus
from strandline.node.supervisor.node_state import NodeState
from strandline.node.supervisor.reloading import Change, Reload, TakesEffect
from strandline.node.supervisor.supervisor import NoSuchShard
from strandline.node.workers import Workers
from support.http_servers import in_loop, secret_file
from support.page_shards import active

pytestmark = pytest.mark.unit

ADMIN = "an-admin-token-of-a-test"


class Supervised:
    """Two shards: an active one, and one without a process."""

    def __init__(self) -> None:
        self.restarted: list[int] = []

    def partitions(self) -> int | None:
        return 2

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return active(0), ShardProcessStatus(1, ProcessState.DOWN, reason="its disk is full")

    def processes(self) -> tuple[ProcessStatus, ...]:
        return (ProcessStatus(FRONT, ProcessState.RUNNING),)

    def started_ms(self) -> int:
        return 0

    def waits_for(self) -> str:
        return ""

    def state(self) -> NodeState:
        return NodeState(shards=self.shards(), processes=self.processes())

    def state_age_s(self) -> float:
        return 0.5

    def clients(self) -> Mapping[int, ShardLink]:
        return {}

    async def restart_shard(self, shard: int) -> None:
        if shard > 1:
            raise NoSuchShard(f"this node does not serve shard {shard}")
        self.restarted.append(shard)


def opener() -> Any:
    raise Retryable("the store is out of reach")


def settings(folder: Path, **query: str) -> Settings:
    token = folder / "admin"
    token.write_text(ADMIN + "\n", encoding="utf-8")
    token.chmod(0o600)
    variables = {"STRANDLINE_HTTP__NODE_ADDRESS": "127.0.0.1:0", "STRANDLINE_HTTP__ADMIN_TOKEN_FILE": str(token)}
    return load_settings(
        None, variables | {f"STRANDLINE_QUERY__{name.upper()}": value for name, value in query.items()}
    )


@asynccontextmanager
async def started(front: NodeFront) -> AsyncIterator[aiohttp.ClientSession]:
    await front.start()
    try:
        async with aiohttp.ClientSession(front.bound.url) as client:
            yield client
    finally:
        await front.stop()


def front_of(folder: Path, supervised: Supervised | None = None, clock: Clock | None = None) -> NodeFront:
    return NodeFront(
        supervised or Supervised(),
        settings(folder),
        opener,
        opener,
        workers=Workers(2),
        clock=clock or SystemClock(),
        mask=SecretMask(),
    )


async def request(
    client: aiohttp.ClientSession, path: str, *, method: str = "GET", token: str = ""
) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with client.request(method, path, headers=headers) as answer:
        return answer.status, await answer.read()


def test_every_path_of_the_documentation_is_answered(tmp_path: Path) -> None:
    """Paths that need a shard are answered with 503."""
    expected = {
        "/": 200,
        "/metrics": 200,
        "/-/healthy": 200,
        "/-/ready": 503,
        "/api/v1/series?match[]=up": 503,
        "/api/v1/labels": 503,
        "/api/v1/label/job/values": 503,
        "/api/v1/query?query=up": 503,
        "/api/v1/query_range?query=up&start=1&end=2&step=1": 503,
        "/api/v1/status/tsdb": 503,
        "/api/v1/status/buildinfo": 200,
        "/api/v1/status/runtimeinfo": 200,
        "/api/v1/metadata": 200,
        "/api/v1/query_exemplars?query=up&start=1&end=2": 200,
        "/api/v1/strandline/shards": 200,
        "/api/v1/strandline/buckets": 503,
        "/api/v1/strandline/cardinality": 503,
        "/api/v1/strandline/ready?period=2026-11-15T10": 503,
        "/api/v1/strandline/hours": 503,
        "/api/v1/strandline/job-rates": 200,
        "/api/v1/jobs": 503,
        "/api/v1/jobs/20261118T101500Z-a1b2c3": 503,
        "/api/v1/jobs/20261118T101500Z-a1b2c3/pause": 405,
        "/api/v1/read": 405,
        "/no/such/path": 404,
    }

    async def run() -> dict[str, int]:
        async with started(front_of(tmp_path)) as client:
            return {path: (await request(client, path))[0] for path in expected}

    assert in_loop(run()) == expected


def test_admin_verbs_need_their_token_and_reach_the_supervisor(tmp_path: Path) -> None:
    supervised = Supervised()

    async def run() -> None:
        async with started(front_of(tmp_path, supervised)) as client:
            path = "/api/v1/strandline/shards/1/restart"
            assert (await request(client, path, method="POST"))[0] == 401
            assert supervised.restarted == []
            assert (await request(client, path, method="POST", token=ADMIN))[0] == 202
            assert supervised.restarted == [1]
            for invalid, code in (("7", 404), ("one", 400), ("-1", 400)):
                status, body = await request(
                    client, path.replace("shards/1", f"shards/{invalid}"), method="POST", token=ADMIN
                )
                assert status == code, body
            assert supervised.restarted == [1]

    in_loop(run())


def test_a_listener_that_is_passed_on_is_served(tmp_path: Path) -> None:
    async def run() -> None:
        with bound_socket("127.0.0.1:0") as listener:
            address = listener.getsockname()
            front = NodeFront(
                Supervised(),
                settings(tmp_path),
                opener,
                opener,
                workers=Workers(2),
                clock=SystemClock(),
                mask=SecretMask(),
                listener=socket.socket(fileno=os.dup(listener.fileno())),
            )
            async with started(front) as client:
                assert (await request(client, "/-/healthy"))[0] == 200
                assert (front.bound.host, front.bound.port) == address

    in_loop(run())


def test_a_reload_over_http_lists_the_changes(tmp_path: Path) -> None:
    front = front_of(tmp_path)

    async def reload_node() -> Reload:
        return Reload(settings(tmp_path), (Change("query.timeout", TakesEffect.AT_ONCE),))

    async def run() -> Any:
        front.reload_node = reload_node
        async with started(front) as client:
            assert (await request(client, "/-/reload", method="POST"))[0] == 401
            status, body = await request(client, "/-/reload", method="POST", token=ADMIN)
            assert status == 200
            return json.loads(body)

    assert in_loop(run())["data"] == {"changed": {"at once": ["query.timeout"]}}


def test_a_reload_changes_the_limits_of_queries(tmp_path: Path) -> None:
    front = front_of(tmp_path)
    path = "/api/v1/query_range?query=up&start=0&end=100&step=1"

    async def run() -> tuple[int, int, bytes]:
        async with started(front) as client:
            before, _ = await request(client, path)
            front.reload(settings(tmp_path, max_points="50"))
            after, body = await request(client, path)
            return before, after, body

    before, after, body = in_loop(run())
    # At first no shard can answer; after the reload the query is refused before it reaches a shard.
    assert (before, after) == (503, 400)
    assert b"50" in body


def test_a_reload_does_not_change_the_start_time(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    front = front_of(tmp_path, clock=clock)

    async def start_times() -> tuple[int, str]:
        async with aiohttp.ClientSession(front.bound.url) as client:
            page = json.loads((await request(client, "/api/v1/strandline/shards"))[1])["data"]
            api = json.loads((await request(client, "/api/v1/status/runtimeinfo"))[1])["data"]
            return page["started_ms"], api["startTime"]

    async def run() -> None:
        async with started(front):
            before = await start_times()
            clock.sleep(60)
            front.reload(settings(tmp_path, max_points="50"))
            assert await start_times() == before

    in_loop(run())


def test_a_reload_changes_the_answer_memory(tmp_path: Path) -> None:
    front = front_of(tmp_path)

    async def limit(client: aiohttp.ClientSession) -> float:
        lines = (await request(client, "/metrics"))[1].decode().splitlines()
        (line,) = [line for line in lines if line.startswith("strandline_answer_memory_limit_bytes ")]
        return float(line.split(" ")[1])

    async def run() -> tuple[float, float]:
        async with started(front) as client:
            before = await limit(client)
            front.reload(settings(tmp_path, answer_memory="64m"))
            return before, await limit(client)

    before, after = in_loop(run())
    assert (before, after) == (settings(tmp_path).query.answer_memory.bytes, ByteSize.parse("64m").bytes)


def test_a_reload_changes_tokens_on_open_connections(tmp_path: Path) -> None:
    front = front_of(tmp_path)
    token = "a-token-for-reading-0123"
    with_token = HttpSettings(read_token_file=secret_file(tmp_path / "read", token))

    async def run() -> list[int]:
        async with started(front) as client:
            path = "/api/v1/status/buildinfo"
            before, _ = await request(client, path)
            front.reload(settings(tmp_path).model_copy(update={"http": with_token}))
            return [before, (await request(client, path))[0], (await request(client, path, token=token))[0]]

    assert in_loop(run()) == [200, 401, 200]


def test_requests_are_counted_by_path_and_code(tmp_path: Path) -> None:
    async def run() -> str:
        async with started(front_of(tmp_path)) as client:
            for _ in range(3):
                await request(client, "/api/v1/label/job/values")
            await request(client, "/no/such/path")
            return (await request(client, "/metrics"))[1].decode()

    lines = in_loop(run()).splitlines()
    (counted,) = [line for line in lines if line.startswith("strandline_http_requests_total") and "/values" in line]
    assert 'handler="/api/v1/label/{name}/values"' in counted
    assert 'code="503"' in counted
    assert counted.endswith(" 3.0")
    assert any('handler="other"' in line for line in lines)
    assert not any("/no/such/path" in line for line in lines)

"""`/-/healthy` and `/-/ready`."""

from dataclasses import replace

import orjson
import pytest

from strandline.node.http.health import health_routes
from strandline.node.shard.report import LimitFigures, ProcessFigures, ShardReport
from strandline.node.shard.status import Phase, Status
from strandline.node.shard.store_health import StoreFigures
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from support.http_servers import Reply, in_loop, served

pytestmark = pytest.mark.unit


class FakeNode:
    def __init__(self, *shards: ShardProcessStatus, partitions: int | None = None) -> None:
        self._shards, self._partitions = shards, partitions

    def partitions(self) -> int | None:
        return self._partitions

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return self._shards


def shard(number: int, phase: Phase, fraction: float | None = None, reason: str = "") -> ShardProcessStatus:
    report = ShardReport(Status(phase=phase, fraction=fraction, reason=reason), ProcessFigures(1, 0.0, 0, 0))
    return ShardProcessStatus(number, ProcessState.RUNNING, report=report)


def get(path: str, *shards: ShardProcessStatus, partitions: int | None = None, **headers: str) -> Reply:
    async def test() -> Reply:
        async with served(health_routes(FakeNode(*shards, partitions=partitions))) as serving:
            return await serving.get(path, headers=headers)

    return in_loop(test())


ACTIVE = shard(0, Phase.ACTIVE)
REPLAYING = shard(1, Phase.REPLAYING, 0.4215)
WAITING = ShardProcessStatus(2, ProcessState.WAITING, reason="killed by signal 9", starts_in_s=4.2)
FAILED = shard(3, Phase.FAILED, reason="the spill is full")


@pytest.mark.parametrize("shards", [(), (ACTIVE,), (WAITING, FAILED)])
def test_it_is_healthy_while_it_serves(shards: tuple[ShardProcessStatus, ...]) -> None:
    assert get("/-/healthy", *shards).status == 200


def test_it_is_ready_when_every_shard_is_active() -> None:
    reply = get("/-/ready", ACTIVE, shard(1, Phase.ACTIVE))
    assert (reply.status, reply.body) == (200, b"Strandline is ready.\nshard 0: active\nshard 1: active\n")


@pytest.mark.parametrize("other", [REPLAYING, WAITING, FAILED, shard(1, Phase.CATCHING_UP), shard(1, Phase.FENCED)])
def test_one_shard_that_is_not_active_is_not_ready(other: ShardProcessStatus) -> None:
    assert get("/-/ready", ACTIVE, other).status == 503


def test_an_active_shard_whose_store_does_not_answer_is_not_ready_until_it_does() -> None:
    def with_store(unanswered_s: float) -> ShardProcessStatus:
        assert ACTIVE.report is not None
        store = StoreFigures("Cassandra at db.example:9042", unanswered_s)
        return replace(ACTIVE, report=replace(ACTIVE.report, store=store))

    assert get("/-/ready", with_store(29.9)).status == 200
    reply = get("/-/ready", with_store(42.3))
    assert reply.status == 503
    # The store's address is only on the page, which needs read access.
    assert reply.body.decode().splitlines()[1:] == ["shard 0: active, its store has not answered for 42 s"]
    body = orjson.loads(get("/-/ready", with_store(42.3), Accept="application/json").body)
    assert (body["ready"], body["shards"][0]["store_unanswered_seconds"]) == (False, 42.3)
    assert get("/-/healthy", with_store(42.3)).status == 200


def test_a_node_without_shards_is_not_ready() -> None:
    assert get("/-/ready").status == 503


def test_an_active_shard_without_a_process_is_not_ready() -> None:
    ended = ShardProcessStatus(0, ProcessState.DOWN, report=ACTIVE.report)
    assert get("/-/ready", ended).status == 503


def test_each_shard_is_listed_with_phase_and_progress_and_without_internal_details() -> None:
    assert get("/-/ready", ACTIVE, REPLAYING, WAITING, FAILED).body.decode().splitlines() == [
        "Strandline is not ready.",
        "shard 0: active",
        "shard 1: replaying 42.1%",
        "shard 2: waiting, starts in 4 s",
        "shard 3: failed",
    ]


def test_it_is_json_for_clients_that_accept_it() -> None:
    reply = get("/-/ready", ACTIVE, REPLAYING, Accept="application/json")
    assert reply.status == 503
    body = orjson.loads(reply.body)
    assert body["ready"] is False
    assert body["shards"][1] == {
        "shard": 1, "active": False, "process": "running", "phase": "replaying", "percent": 42.1,
        "store_unanswered_seconds": None, "behind_s": None, "clocks_ahead_ms": {},
    }  # fmt: skip
    assert body["unserved"] == []


def test_partitions_that_the_node_does_not_serve_are_named() -> None:
    reply = get("/-/ready", ACTIVE, partitions=4)
    assert reply.status == 200, "another node may serve them"
    assert reply.body.decode().splitlines()[-1] == "This node does not serve partitions 1-3 of 4."
    assert orjson.loads(get("/-/ready", ACTIVE, partitions=4, Accept="application/json").body)["unserved"] == [1, 2, 3]
    assert get("/-/ready", partitions=4).body == b"Strandline is not ready.\nIt has no shards yet.\n"


def test_an_active_shard_with_a_lag_warning_is_listed_with_it() -> None:
    def behind(seconds: float | None) -> ShardProcessStatus:
        assert ACTIVE.report is not None
        return replace(ACTIVE, report=replace(ACTIVE.report, behind_s=seconds, limits=LimitFigures(warn_behind_s=15)))

    for seconds, line in (
        (72.34, "shard 0: active, 72 s behind"),
        (14.9, "shard 0: active"),
        (None, "shard 0: active"),
    ):
        assert get("/-/ready", behind(seconds)).body.decode().splitlines()[1] == line
    assert orjson.loads(get("/-/ready", behind(72.34), Accept="application/json").body)["shards"][0]["behind_s"] == 72.3


def test_a_wrong_clock_is_listed_with_its_shard_and_does_not_affect_readiness() -> None:
    assert ACTIVE.report is not None
    report = replace(ACTIVE.report, clocks={"node": -90_000, "store": 0, "broker": 60_000})
    skewed = replace(ACTIVE, report=report)
    reply = get("/-/ready", skewed)
    assert reply.status == 200
    assert reply.body.endswith(b"shard 0: active, the clock 'node' is 90 s behind the others\n")
    body = orjson.loads(get("/-/ready", skewed, Accept="application/json").body)
    assert body["shards"][0]["clocks_ahead_ms"] == report.clocks

import math

import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.node.bulk.lag import LagLimit, ReadingSpeed
from strandline.node.bulk.opening import expects_lags
from strandline.node.client.addresses import parse_url
from strandline.node.client.answers import ShardLag
from strandline.node.client.errors import NodeUnreachable
from strandline.node.client.node_client import NodeClient
from strandline.node.settings import Settings
from support.fake_node import fake_node

pytestmark = pytest.mark.unit


class Node:
    def __init__(self, *lags: float) -> None:
        self.lags, self.is_reachable, self.requests = list(lags), True, 0

    def shard_lags(self) -> list[ShardLag]:
        self.requests += 1
        if not self.is_reachable:
            raise NodeUnreachable("no node answers")
        return [ShardLag(shard, lag) for shard, lag in enumerate(self.lags)]


def test_no_chunk_lands_while_a_shard_is_further_behind_than_allowed() -> None:
    node, clock = Node(0.0, 31.0), ManualClock()
    limit = LagLimit(node, 30, clock)
    assert limit.wait_s(1) > 0
    node.lags = [30.0, 0.0]
    # The lag is not requested for each chunk.
    assert limit.wait_s(1) > 0
    assert node.requests == 1
    clock.sleep(limit.wait_s(1))
    assert limit.wait_s(1) == 0
    node.lags = [30.5]
    clock.sleep(1)
    assert limit.wait_s(1) > 0


def test_without_a_known_lag_parts_do_not_wait() -> None:
    node, clock = Node(100.0), ManualClock()
    limit = LagLimit(node, 30, clock)
    assert limit.wait_s(1) > 0
    node.is_reachable = False
    clock.sleep(1)
    assert limit.wait_s(1) == 0
    assert LagLimit(Node(), 30, clock).wait_s(1) == 0
    node.is_reachable = True
    clock.sleep(20)
    assert limit.wait_s(1) > 0


def warnings_of(limit: LagLimit, clock: ManualClock, polls: int) -> int:
    with capture_logs() as lines:
        for _ in range(polls):
            limit.wait_s(1)
            clock.sleep(20)
    return [line["log_level"] for line in lines].count("warning")


def test_an_expected_node_that_does_not_answer_gives_one_warning_per_outage() -> None:
    node, clock = Node(), ManualClock()
    limit = LagLimit(node, 30, clock)
    node.is_reachable = False
    assert warnings_of(limit, clock, 3) == 1
    node.is_reachable = True
    assert warnings_of(limit, clock, 1) == 0
    node.is_reachable = False
    assert warnings_of(limit, clock, 3) == 1


def test_a_worker_without_an_expected_node_logs_no_warning() -> None:
    node, clock = Node(), ManualClock()
    limit = LagLimit(node, 30, clock, is_expected=False)
    node.is_reachable = False
    assert warnings_of(limit, clock, 3) == 0
    # A node that answered once is unreachable again.
    node.is_reachable = True
    assert warnings_of(limit, clock, 1) == 0
    node.is_reachable = False
    assert warnings_of(limit, clock, 3) == 1


class SlowShard:
    """Reads records at a constant speed, and reads the end of the log every five seconds."""

    def __init__(self, clock: ManualClock, speed: float) -> None:
        self._clock, self._speed, self._at = clock, speed, clock.monotonic()
        self.landed: list[float] = []
        """The landing time of each record."""
        self.read, self._end, self._unread, self._end_read_at = 0.0, 0, 0, -math.inf

    def lag_s(self) -> float:
        """How long the oldest unread record has been waiting."""
        now = self._clock.monotonic()
        self.read = min(len(self.landed), self.read + (now - self._at) * self._speed)
        self._at = now
        return now - self.landed[int(self.read)] if self.read < len(self.landed) else 0.0

    def shard_lags(self) -> list[ShardLag]:
        lag, now = self.lag_s(), self._clock.monotonic()
        if now - self._end_read_at >= 5:
            self._end, self._end_read_at = len(self.landed), now
            self._unread = self._end - int(self.read)
        return [ShardLag(0, lag if self.read < self._end else 0.0, self._unread, int(self.read))]


@pytest.mark.parametrize("times", [0.5, 1.5, 4])
def test_the_lag_stays_under_the_limit_however_fast_a_job_could_land(times: float) -> None:
    clock, speed = ManualClock(), 20
    shard = SlowShard(clock, speed)
    limit, lags, waited = LagLimit(shard, 30, clock), list[float](), 0.0
    while clock.monotonic() < 400:
        while (wait := limit.wait_s(1)) > 0:
            # In short steps, to record the lag frequently.
            clock.sleep(min(wait, 0.25))
            waited += min(wait, 0.25)
            lags.append(shard.lag_s())
        clock.sleep(1 / (speed * times))
        shard.landed.append(clock.monotonic())
        lags.append(shard.lag_s())
    assert max(lags) < 30
    # The shard is always busy, and a job that lands slower than the shard reads never waits.
    assert (waited > 0) == (times > 1)
    assert shard.read > 0.95 * 400 * min(speed, speed * times)


def test_the_speed_is_measured_again_after_a_restart_or_without_a_backlog() -> None:
    speed = ReadingSpeed()
    # 100 were unread at the last request to the brokers; 10 and 20 were read since then.
    assert [speed.left_s(ShardLag(0, 1.0, 100, 10 * at), at) for at in (0, 1, 2)] == [0, 0, 8]
    assert speed.left_s(ShardLag(0, 1.0, 99, 30), 3) == pytest.approx(9.9)
    assert speed.left_s(ShardLag(0, 1.0, 100, 10), 6) == 0
    assert speed.left_s(ShardLag(0, 1.0, 100, 10), 10) == 0
    assert speed.left_s(ShardLag(0, 1.0, 100, 120), 31) == 0
    assert speed.left_s(ShardLag(0, 0.0, 0, 120), 40) == 0
    assert speed.left_s(ShardLag(0, None), 41) == 0


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), False),
        (Settings(jobs={"max_lag": "30s"}), False),
        (Settings(jobs={"max_lag": "1m"}), True),
        (Settings(jobs={"node_urls": ["http://node-1.example.com:9460"]}), True),
        (Settings(http={"node_address": "127.0.0.1:9999"}), True),
    ],
)
def test_lags_are_expected_if_a_setting_indicates_a_node(settings: Settings, expected: bool) -> None:
    assert expects_lags(settings) is expected


def test_the_lags_of_shards_are_requested_from_the_node() -> None:
    with fake_node() as node:
        shards = [
            {"shard": 0, "lag_s": 2.5, "lag": 7, "position": 100},
            {"shard": 1, "lag_s": None},
            {"shard": 2, "lag_s": 0},
        ]
        node.data("/api/v1/strandline/shards", {"shards": shards})
        expected = [ShardLag(0, 2.5, 7, 100), ShardLag(1, None), ShardLag(2, 0.0)]
        assert NodeClient(parse_url(node.url)).shard_lags() == expected

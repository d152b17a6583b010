import pytest
from structlog.testing import capture_logs

from strandline.clock import ManualClock
from strandline.node.bulk.lag import LagLimit
from strandline.node.bulk.opening import expects_lags
from strandline.node.client.addresses import parse_url
from strandline.node.client.errors import NodeUnreachable
from strandline.node.client.node_client import NodeClient
from strandline.node.settings import Settings
from support.fake_node import fake_node

pytestmark = pytest.mark.unit


class Node:
    def __init__(self, *lags: float) -> None:
        self.lags, self.is_there, self.asked = list(lags), True, 0

    def shard_lags_s(self) -> list[float]:
        self.asked += 1
        if not self.is_there:
            raise NodeUnreachable("no node answers")
        return self.lags


def test_nothing_lands_while_a_shard_is_further_behind_than_allowed() -> None:
    node, clock = Node(0.0, 31.0), ManualClock()
    limit = LagLimit(node, 30, clock)
    assert limit.wait_s(1) > 0
    node.lags = [30.0, 0.0]
    # The node is not asked for each chunk.
    assert limit.wait_s(1) > 0
    assert node.asked == 1
    clock.sleep(limit.wait_s(1))
    assert limit.wait_s(1) == 0
    node.lags = [30.5]
    clock.sleep(1)
    assert limit.wait_s(1) > 0


def test_where_no_node_answers_or_nothing_is_known_nothing_waits() -> None:
    node, clock = Node(100.0), ManualClock()
    limit = LagLimit(node, 30, clock)
    assert limit.wait_s(1) > 0
    node.is_there = False
    clock.sleep(1)
    assert limit.wait_s(1) == 0
    assert LagLimit(Node(), 30, clock).wait_s(1) == 0
    node.is_there = True
    clock.sleep(20)
    assert limit.wait_s(1) > 0


def warnings_of(limit: LagLimit, clock: ManualClock, looks: int) -> int:
    with capture_logs() as lines:
        for _ in range(looks):
            limit.wait_s(1)
            clock.sleep(20)
    return [line["log_level"] for line in lines].count("warning")


def test_a_node_that_is_expected_and_does_not_answer_is_warned_of_once_each_time_it_goes() -> None:
    node, clock = Node(), ManualClock()
    limit = LagLimit(node, 30, clock)
    node.is_there = False
    assert warnings_of(limit, clock, 3) == 1
    node.is_there = True
    assert warnings_of(limit, clock, 1) == 0
    node.is_there = False
    assert warnings_of(limit, clock, 3) == 1


def test_a_worker_on_a_machine_without_a_node_says_nothing_about_it() -> None:
    node, clock = Node(), ManualClock()
    limit = LagLimit(node, 30, clock, is_expected=False)
    node.is_there = False
    assert warnings_of(limit, clock, 3) == 0
    # One that answered once has gone.
    node.is_there = True
    assert warnings_of(limit, clock, 1) == 0
    node.is_there = False
    assert warnings_of(limit, clock, 3) == 1


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
def test_lags_are_expected_where_a_setting_says_that_there_is_a_node(settings: Settings, expected: bool) -> None:
    assert expects_lags(settings) is expected


def test_a_node_is_asked_for_the_lags_of_its_shards() -> None:
    with fake_node() as node:
        shards = [{"shard": 0, "lag_s": 2.5}, {"shard": 1, "lag_s": None}, {"shard": 2, "lag_s": 0}]
        node.data("/api/v1/strandline/shards", {"shards": shards})
        assert NodeClient(parse_url(node.url)).shard_lags_s() == [2.5, 0.0]

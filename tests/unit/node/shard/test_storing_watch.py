"""Whether the storing thread makes progress."""

import pytest

from strandline.clock import ManualClock
from strandline.node.settings import Settings
from strandline.node.shard.assembling import store_progress
from strandline.node.shard.parts import StoreProgress
from strandline.node.shard.storing_watch import StoringWatch
from strandline.store.cassandra.requests import Requests
from strandline.store.cassandra.retries import Retries, RetryPolicy
from strandline.store.cassandra.store import CassandraStore
from support.shard_world import World

pytestmark = pytest.mark.unit


def test_each_iteration_and_each_answer_of_the_store_is_progress() -> None:
    clock, answers = ManualClock(), [0]
    watch = StoringWatch(StoreProgress(lambda: answers[0], silence_s=50.0), clock)
    for step in range(20):
        assert watch.stuck_s() == 0.0
        clock.sleep(50.0)
        assert watch.stuck_s() == 0.0
        if step % 2:
            watch.iterated()
        else:
            answers[0] += 1
    assert watch.stuck_s() == 0.0
    clock.sleep(57.0)
    assert watch.stuck_s() == 7.0
    watch.iterated()
    assert watch.stuck_s() == 0.0


def test_a_cassandra_store_may_be_silent_for_as_long_as_a_call_is_retried() -> None:
    clock = ManualClock()
    requests = Requests(None, "k", "hosts", Retries(clock))
    store = CassandraStore(requests, clock)
    progress = store_progress(Settings(cassandra={"request_timeout": "20s"}), store)
    assert progress.silence_s == RetryPolicy().deadline + 2 * 20
    assert progress.answers() == 0
    requests.writes_answered += 3
    assert progress.answers() == 3


def test_a_sqlite_store_may_be_silent_for_as_long_as_others_may_write(world: World) -> None:
    progress = store_progress(Settings(store={"kind": "sqlite"}), world.sqlite)
    assert progress.silence_s >= 30
    assert progress.answers() == 0

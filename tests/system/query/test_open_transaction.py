"""Scenario 47 with a real Kafka: a producer keeps a transaction open while others write after it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.query.answers import SamplesAnswer
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import SamplesRequest
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.stack import Stack
from strandline.time_range import ALL_TIMES
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.query_worlds import LiveWorld, LuceneWorld, names_of, selector
from support.real_kafka import TemporaryTopic, eventually
from support.shard_world import START

pytestmark = pytest.mark.system


@pytest.fixture
def topic(stack: Stack) -> TemporaryTopic:
    return TemporaryTopic({"bootstrap.servers": stack.kafka_bootstrap})


@pytest.fixture
def world(stack: Stack, topic: TemporaryTopic, tmp_path: Path) -> Iterator[LuceneWorld]:
    """A shard that reads the topic. The test controls the clock that measures the age of unread records."""
    client = {"bootstrap.servers": stack.kafka_bootstrap}
    log = KafkaLog(client, dataset="system", topic=topic.name, partition=0, watch_every=0.2)
    with closing(log), closing(LuceneWorld(tmp_path, poll_timeout_s=0.02)) as made:
        made.log = log  # type: ignore[assignment]
        yield made


def write(topic: TemporaryTopic, name: str) -> int:
    series = Series([("__name__", "up"), ("name", name)], [(START, 1.0)])
    return topic.append(compress(encode_request([series])), START)


def test_an_answer_without_the_records_after_an_open_transaction_has_a_warning(
    topic: TemporaryTopic, world: LuceneWorld
) -> None:
    write(topic, "before")
    transaction = topic.begin()
    opened_at = transaction.append(b"of a foreign producer", START)
    for name in ("behind 1", "behind 2"):
        write(topic, name)
    world.start()

    def has_read(position: int) -> bool:
        world.pass_time(100)
        world.running.step()
        return world.is_active() and world.running.position == position

    with closing(ShardAnswers(LiveWorld(world))) as answers:

        def request_samples() -> SamplesAnswer:
            request = SamplesRequest(selector("up"), ALL_TIMES, 10, 10)
            answer = answers.answer(request, Cancellation(SystemClock(), 60.0))
            assert isinstance(answer, SamplesAnswer)
            return answer

        eventually(lambda: has_read(opened_at))
        (warning,) = request_samples().warnings
        assert warning.startswith(
            f"shard 0 can't read past offset {opened_at}, where an open transaction holds back 3 records since 1970-"
        )
        assert world.status.lag == 0
        assert [name for _, name in names_of(request_samples().keys)] == ["before"]
        transaction.abort()
        eventually(lambda: has_read(topic.high()))
        eventually(lambda: has_read(topic.high()) and request_samples().warnings == ())
        assert [name for _, name in names_of(request_samples().keys)] == ["before", "behind 1", "behind 2"]

"""Refreshing the state of the topic."""

from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from strandline.errors import StrandlineError
from strandline.node.gateway.producer import NotDelivered
from strandline.node.gateway.topic import TopicWatch, check_record_size
from strandline.node.shard.kafka_admin import TopicIdentity
from strandline.node.shard.log import LogUnreachable, TopicMissing, TopicUnfit
from support.gateways import FakeProducer
from support.real_kafka import eventually

pytestmark = pytest.mark.unit

NO_TOPIC = TopicMissing("there is no topic")


@dataclass
class FakeInspector:
    """Returns what the test sets, and counts the calls."""

    answer: TopicIdentity | StrandlineError = field(default_factory=lambda: topic(4))
    calls: int = 0
    closed: bool = False

    def inspect(self) -> TopicIdentity:
        self.calls += 1
        if isinstance(self.answer, StrandlineError):
            raise self.answer
        return self.answer

    def close(self) -> None:
        self.closed = True


def topic(partitions: int, topic_id: str = "one") -> TopicIdentity:
    return TopicIdentity("metrics", topic_id, partitions)


class Watched:
    def __init__(self, every_s: float = 3600) -> None:
        self.inspector, self.producer = FakeInspector(), FakeProducer(4)
        self.watch = TopicWatch(self.inspector, self.producer, every_s)


def test_the_partitions_are_unknown_before_the_first_refresh() -> None:
    watch = Watched().watch
    assert watch.partitions == 0
    assert watch.trouble is not None


def test_a_refresh_reads_the_partitions_and_clears_the_error() -> None:
    watched = Watched()
    watched.watch.refresh()
    assert (watched.watch.partitions, watched.watch.trouble) == (4, None)


def test_partitions_are_used_only_once_the_producer_knows_them() -> None:
    watched = Watched()
    watched.watch.refresh()
    watched.inspector.answer = topic(6)
    watched.watch.refresh()
    assert watched.watch.partitions == 4
    assert isinstance(watched.watch.trouble, NotDelivered)
    watched.producer.partitions = 6
    watched.watch.refresh()
    assert (watched.watch.partitions, watched.watch.trouble) == (6, None)


def test_unresponsive_brokers_are_an_error_and_the_partitions_stay() -> None:
    watched = Watched()
    watched.watch.refresh()
    watched.inspector.answer = LogUnreachable("no broker answers")
    watched.watch.refresh()
    assert watched.watch.partitions == 4
    assert "no broker answers" in str(watched.watch.trouble)
    watched.inspector.answer = topic(4)
    watched.watch.refresh()
    assert watched.watch.trouble is None


def test_a_recreated_topic_gets_a_new_producer() -> None:
    watched = Watched()
    watched.watch.refresh()
    assert watched.producer.renewals == 0
    watched.inspector.answer = topic(2, "two")
    watched.watch.refresh()
    assert (watched.producer.renewals, watched.watch.partitions) == (1, 2)


def test_a_topic_with_unsuitable_settings_is_a_start_error() -> None:
    watched = Watched()
    watched.inspector.answer = TopicUnfit("records from the future")
    with pytest.raises(TopicUnfit):
        watched.watch.start()
    assert watched.inspector.closed


def test_a_missing_topic_is_waited_for_with_one_log_line() -> None:
    watched = Watched(every_s=0.001)
    watched.inspector.answer = NO_TOPIC
    with capture_logs() as lines:
        watched.watch.start()
        assert watched.watch.trouble is NO_TOPIC
        eventually(lambda: watched.inspector.calls > 5)
    assert [(line["event"], line["reason"]) for line in lines] == [("nothing can be written", "there is no topic")]
    watched.inspector.answer = topic(4)
    eventually(lambda: watched.watch.trouble is None)
    assert watched.watch.partitions == 4
    watched.watch.close()
    eventually(lambda: watched.inspector.closed)


def test_unreachable_brokers_are_waited_for_at_the_start() -> None:
    watched = Watched(every_s=0.001)
    watched.inspector.answer = LogUnreachable("no broker answers")
    watched.watch.start()
    watched.inspector.answer = NO_TOPIC
    eventually(lambda: watched.watch.trouble is NO_TOPIC)
    watched.inspector.answer = topic(4)
    eventually(lambda: watched.watch.trouble is None)
    watched.watch.close()
    eventually(lambda: watched.inspector.closed)


def test_a_requested_refresh_does_not_wait_for_the_interval() -> None:
    watched = Watched()
    watched.watch.start()
    assert watched.inspector.calls == 1
    watched.watch.refresh_soon()
    eventually(lambda: watched.inspector.calls == 2)
    watched.watch.close()
    eventually(lambda: watched.inspector.closed)


def test_a_topic_that_accepts_only_smaller_records_is_a_start_error() -> None:
    check_record_size("metrics", 800 << 10, 1_048_588)
    with pytest.raises(TopicUnfit, match=r"max\.message\.bytes") as error:
        check_record_size("metrics", 1 << 20, 1_048_588)
    assert "gateway.max_record" in error.value.remedy

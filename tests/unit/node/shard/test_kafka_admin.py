"""Requests for offsets with a client that uses stale metadata of a partition's leader."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException

from strandline.clock import ManualClock
from strandline.node.shard import kafka_admin
from strandline.node.shard.kafka_admin import KafkaAdmin
from strandline.node.shard.log import LogEnds, LogUnreachable

pytestmark = pytest.mark.unit

END = 7
STALE = [KafkaError._NOENT, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH]


class Client:
    """Answers from the metadata of an outage, until they are refreshed."""

    def __init__(self, code: int) -> None:
        self.code, self.is_over, self.is_stale = code, True, True

    def list_offsets(self, partitions: dict[Any, object], **_: object) -> dict[Any, "Future[Any]"]:
        answer = Future[Any]()
        if self.is_stale:
            answer.set_exception(KafkaException(KafkaError(self.code)))
        else:
            answer.set_result(SimpleNamespace(offset=END))
        return dict.fromkeys(partitions, answer)

    def list_topics(self, _topic: str, **_: object) -> None:
        self.is_stale = not self.is_over

    def describe_topics(self, _topics: object, **_: object) -> dict[str, "Future[Any]"]:
        answer = Future[Any]()
        answer.set_result(SimpleNamespace(topic_id="id", partitions=[object()]))
        return {"metrics": answer}

    def __exit__(self, *_: object) -> None:
        return None


@pytest.fixture(params=STALE)
def client(request: pytest.FixtureRequest) -> Client:
    return Client(request.param)


@pytest.fixture
def admin(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaAdmin]:
    monkeypatch.setattr(kafka_admin, "create_client", lambda _kind, _options: client)
    with closing(KafkaAdmin({}, "metrics")) as created:
        yield created


def test_a_leader_that_returns_is_found_at_once(admin: KafkaAdmin) -> None:
    assert admin.end(0, IsolationLevel.READ_COMMITTED) == END


def test_without_a_leader_there_is_no_offset(admin: KafkaAdmin, client: Client) -> None:
    client.is_over = False
    with pytest.raises(LogUnreachable):
        admin.end(0, IsolationLevel.READ_COMMITTED)


def test_a_repeated_request_without_waiting_finds_the_leader(admin: KafkaAdmin) -> None:
    clock = ManualClock(0)
    with pytest.raises(LogUnreachable):
        admin.request_ends(0, clock).answer()
    assert admin.request_ends(0, clock).answer() == LogEnds(END, END, END)

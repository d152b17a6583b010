"""Checking and creating topics in a real Kafka."""

import time

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from strandline.node.shard.kafka_admin import KafkaAdmin
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.kafka_topics import (
    TopicFacts,
    check_topic,
    create_dead_topic,
    create_topic,
    dead_topic,
)
from strandline.node.shard.log import LogUnreachable, TopicUnfit
from strandline.node.stack import Stack
from support.real_kafka import TIMEOUT, TemporaryTopic, fresh_topic, produce, unused_address

pytestmark = pytest.mark.system

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR


@pytest.fixture
def client(stack: Stack) -> dict[str, str | int | bool]:
    return {"bootstrap.servers": stack.kafka_bootstrap}


def alter(client: dict[str, str], topic: str, setting: str) -> None:
    """Like `kafka-configs.sh --alter --add-config`."""
    name, value = setting.split("=")
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(client)
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT)


def test_a_created_topic_is_suitable_and_has_the_requested_settings(client: dict[str, str]) -> None:
    name = fresh_topic()
    assert create_topic(client, name, partitions=3, replication=1, retention_ms=2 * DAY)
    facts = check_topic(client, name, 5 * MINUTE)
    topic_id = KafkaLog(client, dataset="topics", topic=name, partition=2).topic_id()
    assert facts == TopicFacts(topic_id, partitions=3, retention_ms=2 * DAY, timestamp_type="LogAppendTime")


def test_an_existing_topic_is_unchanged(client: dict[str, str]) -> None:
    name = fresh_topic()
    assert create_topic(client, name, partitions=1, replication=1, retention_ms=None)
    before = check_topic(client, name, HOUR)
    assert not create_topic(client, name, partitions=5, replication=1, retention_ms=DAY)
    assert check_topic(client, name, HOUR) == before
    assert before.retention_ms is None


def test_more_replicas_than_brokers_are_refused_with_the_numbers(client: dict[str, str]) -> None:
    with pytest.raises(TopicUnfit, match=r"1 partitions, 3 replicas"):
        create_topic(client, fresh_topic(), partitions=1, replication=3, retention_ms=None)


def test_a_missing_topic_is_named(client: dict[str, str]) -> None:
    name = fresh_topic()
    with pytest.raises(TopicUnfit, match=f"no topic {name}"):
        check_topic(client, name, HOUR)


def test_unreachable_brokers_are_not_taken_for_a_missing_topic() -> None:
    with pytest.raises(LogUnreachable):
        check_topic({"bootstrap.servers": unused_address(), "socket.timeout.ms": 500}, "metrics", HOUR)


def test_producer_times_are_refused_until_limited_and_kafka_enforces_the_limit(
    client: dict[str, str],
) -> None:
    """Scenario 18: one record from far in the future."""
    topic = TemporaryTopic(client, {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})
    with pytest.raises(TopicUnfit, match="from the future") as caught:
        check_topic(client, topic.name, 5 * MINUTE)
    setting = f"message.timestamp.after.max.ms={5 * MINUTE}"
    assert f"--add-config {setting}" in caught.value.remedy
    alter(client, topic.name, setting)
    assert check_topic(client, topic.name, 5 * MINUTE).timestamp_type == "CreateTime"

    now = time.time_ns() // 1_000_000
    topic.append(b"a minute ahead", now + MINUTE)
    with pytest.raises(AssertionError, match="INVALID_TIMESTAMP"):
        topic.append(b"an hour ahead", now + HOUR)


def test_the_alternative_remedy_lets_the_broker_set_the_times(client: dict[str, str]) -> None:
    """Scenario 18."""
    topic = TemporaryTopic(client, {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})
    alter(client, topic.name, "message.timestamp.type=LogAppendTime")
    assert check_topic(client, topic.name, 5 * MINUTE).timestamp_type == "LogAppendTime"
    future = time.time_ns() // 1_000_000 + 365 * DAY
    topic.append(b"from the future", future)
    log = KafkaLog(client, dataset="topics", topic=topic.name, partition=0)
    log.seek(0)
    (record_time,) = log.poll(1, TIMEOUT).times.tolist()
    assert record_time < future - 364 * DAY
    log.close()


def test_a_compacted_topic_is_refused_until_it_only_deletes(client: dict[str, str]) -> None:
    topic = TemporaryTopic(client, {"cleanup.policy": "compact"})
    with pytest.raises(TopicUnfit, match=r"--add-config cleanup\.policy=delete"):
        check_topic(client, topic.name, HOUR)
    alter(client, topic.name, "cleanup.policy=delete")
    assert check_topic(client, topic.name, HOUR).partitions == 1


def test_the_dead_letter_topic_is_created_once_with_the_record_limit_of_its_topic(client: dict[str, str]) -> None:
    name = fresh_topic()
    create_topic(client, name, partitions=2, replication=1, retention_ms=None)
    alter(client, name, f"max.message.bytes={3 << 20}")
    assert create_dead_topic(client, name, replication=1, retention_ms=DAY)
    assert not create_dead_topic(client, name, replication=1, retention_ms=DAY)
    settings = KafkaAdmin(client, dead_topic(name)).settings()
    assert int(settings["retention.ms"]) == DAY
    largest = Producer({**client, "message.max.bytes": 10 << 20, "log_level": 0})
    produce(largest, dead_topic(name), bytes(3 << 20), 0)
    with pytest.raises((AssertionError, KafkaException), match="MSG_SIZE_TOO_LARGE"):
        produce(largest, dead_topic(name), bytes(4 << 20), 0)


def test_unclean_elections_cause_a_warning_until_they_are_disabled(client: dict[str, str]) -> None:
    topic = TemporaryTopic(
        client, {"message.timestamp.type": "LogAppendTime", "unclean.leader.election.enable": "true"}
    )
    warning = check_topic(client, topic.name, HOUR).warning
    assert f"topic {topic.name} has unclean.leader.election.enable=true" in warning
    alter(client, topic.name, "unclean.leader.election.enable=false")
    assert check_topic(client, topic.name, HOUR).warning == ""

"""Brokers that hang and return, and brokers that refuse requests."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from strandline.clock import SystemClock
from strandline.kafka.errors import KafkaRefused
from strandline.node.shard.kafka_dead_letters import KafkaDeadLetters
from strandline.node.shard.kafka_log import KafkaLog
from strandline.node.shard.kafka_topics import check_topic
from strandline.node.shard.log import LogEnds, LogUnreachable
from support.guarded_kafka import GUEST, ROOT, GuardedKafka
from support.partition_logs import answered, offsets, read_on, values
from support.real_kafka import TIMEOUT, TemporaryTopic, eventually

pytestmark = pytest.mark.system

OpenLog = Callable[..., KafkaLog]


@pytest.fixture
def topic(guarded_kafka: GuardedKafka) -> TemporaryTopic:
    return TemporaryTopic(guarded_kafka.client())


@pytest.fixture
def open_log(guarded_kafka: GuardedKafka, topic: TemporaryTopic) -> Iterator[OpenLog]:
    with ExitStack() as opened:

        def open_one(user: str = ROOT, password: str | None = None, timeout_ms: int = 5_000) -> KafkaLog:
            client = {**guarded_kafka.client(user, password), "socket.timeout.ms": timeout_ms}
            log = KafkaLog(client, dataset="outages", topic=topic.name, partition=0, watch_every=0.2)
            return opened.enter_context(closing(log))

        yield open_one


def is_unreachable(log: KafkaLog) -> bool:
    try:
        log.poll(10, 0.1)
    except LogUnreachable:
        return True
    return False


def returns_its_ends(log: KafkaLog) -> bool:
    try:
        # No other request is sent meanwhile, by which the client would learn that the leader has a new epoch.
        log.ends()
    except LogUnreachable:
        return False
    return True


def test_hung_brokers_are_noticed_and_so_is_their_return_without_any_record(
    guarded_kafka: GuardedKafka, topic: TemporaryTopic, open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    clock = SystemClock()
    topic.append(b"before")
    log = open_log()
    log.seek(0)
    assert offsets(read_on(log)) == [0]
    with guarded_kafka.hanging():
        eventually(lambda: is_unreachable(log))
        begun = clock.monotonic()
        with pytest.raises(LogUnreachable):
            log.ends()
        # Within less than the minute that the client would take by itself.
        assert clock.monotonic() - begun < 40
    eventually(lambda: not is_unreachable(log))
    assert f"topic {topic.name}: the brokers are available again" in caplog.messages
    # They answer before they know the leaders of partitions again.
    eventually(lambda: returns_its_ends(log))
    topic.append(b"after")
    assert values(read_on(log)) == [b"after"]


@pytest.mark.parametrize(
    "ask", [KafkaLog.topic_id, KafkaLog.ends, lambda log: log.offset_at(0), lambda log: log.offset_at(10**15)]
)
def test_a_missing_answer_is_never_taken_for_an_answer(
    guarded_kafka: GuardedKafka, topic: TemporaryTopic, open_log: OpenLog, ask: Callable[[KafkaLog], object]
) -> None:
    """Scenario 26: an invented end would cut a bucket."""
    topic.append(b"value")
    log = open_log()
    ask(log)
    with guarded_kafka.hanging(), pytest.raises(LogUnreachable):
        ask(log)


def test_an_unanswered_request_for_the_ends_does_not_block_the_caller(
    guarded_kafka: GuardedKafka, topic: TemporaryTopic, open_log: OpenLog
) -> None:
    """The answer is None until `kafka.request_timeout`, and then an error: never an offset."""
    topic.append(b"value")
    log = open_log(timeout_ms=3_000)
    assert answered(log.request_ends()) == LogEnds(0, 1, 1)
    with guarded_kafka.hanging():
        question = log.request_ends()
        assert question.answer() is None
        with pytest.raises(LogUnreachable):
            answered(question)


def test_closing_is_fast_while_a_broker_hangs_with_a_mirrored_offset(
    guarded_kafka: GuardedKafka, topic: TemporaryTopic, open_log: OpenLog
) -> None:
    clock = SystemClock()
    topic.append(b"value")
    log = open_log(timeout_ms=120_000)
    log.seek(0)
    log.mirror(0)
    assert offsets(read_on(log)) == [0]
    with guarded_kafka.hanging():
        log.mirror(1)
        begun = clock.monotonic()
        log.close()
        assert clock.monotonic() - begun < 60


def test_a_wrong_password_is_a_fatal_error_with_a_remedy(open_log: OpenLog) -> None:
    log = open_log(ROOT, "guessed")
    log.seek(0)
    with pytest.raises(KafkaRefused, match=r"kafka\.credentials_file"):
        eventually(lambda: is_unreachable(log) and False)


def test_a_missing_permission_is_a_fatal_error_and_named(topic: TemporaryTopic, open_log: OpenLog) -> None:
    topic.append(b"value")
    log = open_log(GUEST)
    right = f"READ, DESCRIBE and DESCRIBE_CONFIGS on the topic {topic.name}"
    log.seek(0)
    for ask in (log.topic_id, log.ends, lambda: log.offset_at(0)):
        with pytest.raises(KafkaRefused, match=right):
            ask()
    with pytest.raises(KafkaRefused, match=right):
        eventually(lambda: is_unreachable(log) and False)


def test_reading_continues_without_permission_for_the_group(
    topic: TemporaryTopic, open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the mirrored offset requires it, and nothing depends on that."""
    rights = [
        AclBinding(ResourceType.TOPIC, topic.name, ResourcePatternType.LITERAL, f"User:{GUEST}", "*", each,
                   AclPermissionType.ALLOW)
        for each in (AclOperation.READ, AclOperation.DESCRIBE)
    ]  # fmt: skip
    for granted in topic.admin.create_acls(rights).values():
        granted.result(TIMEOUT)
    topic.append(b"value")
    log = open_log(GUEST)
    log.topic_id()
    log.seek(0)
    assert values(read_on(log)) == [b"value"]
    # The consumer requests its group in the background, and is refused.
    eventually(lambda: len(log.poll(1, 0.1)) == 0 and any("roup authorization failed" in m for m in caplog.messages))
    topic.append(b"next")
    assert values(read_on(log)) == [b"next"]


def test_a_topic_check_without_permission_is_a_fatal_error(guarded_kafka: GuardedKafka, topic: TemporaryTopic) -> None:
    with pytest.raises(KafkaRefused, match="DESCRIBE_CONFIGS"):
        check_topic(guarded_kafka.client(GUEST), topic.name, 3_600_000)


def test_an_offset_without_permission_to_mirror_it_is_logged_and_skipped(
    open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(GUEST)
    log.mirror(5)
    eventually(lambda: any("group strandline-outages could not be committed" in line for line in caplog.messages))


def test_dead_letters_without_permission_to_write_are_lost_and_counted(
    guarded_kafka: GuardedKafka, topic: TemporaryTopic
) -> None:
    letters = KafkaDeadLetters(guarded_kafka.client(GUEST), topic.name)
    letters.send(shard=0, offset=1, time=2, reason="why", value=b"value")
    eventually(lambda: letters.counts().lost == 1)
    letters.close(TIMEOUT)

"""Monitoring of the topic and the brokers while a partition is read."""

import logging
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError

from strandline.clock import ManualClock
from strandline.errors import StrandlineError
from strandline.kafka.error_mapping import no_such_topic
from strandline.kafka.errors import KafkaRefused
from strandline.node.shard.kafka_admin import TopicIdentity
from strandline.node.shard.kafka_watch import REQUEST_INTERVAL_S, TopicWatch
from strandline.node.shard.log import LogUnreachable, TopicUnfit

pytestmark = pytest.mark.unit

SAME = TopicIdentity("metrics", "id-1", 4)
ANOTHER = TopicIdentity("metrics", "id-2", 4)
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
REFUSED = KafkaError(KafkaError._AUTHENTICATION, "wrong password")
AWAY = LogUnreachable("no answer")


class Brokers:
    """Answers when the test does."""

    topic = "metrics"

    def __init__(self) -> None:
        self.requests: list[Future[Any]] = []

    def request_identity(self) -> Future[Any]:
        self.requests.append(Future())
        return self.requests[-1]

    def identity_in(self, answer: Future[Any]) -> TopicIdentity:
        return answer.result(0)

    def answer(self, answer: TopicIdentity | StrandlineError) -> None:
        if isinstance(answer, StrandlineError):
            self.requests[-1].set_exception(answer)
        else:
            self.requests[-1].set_result(answer)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def watch(brokers: Brokers, clock: ManualClock) -> TopicWatch:
    return TopicWatch(brokers, 3, clock)


def request_and_answer(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock, answer: TopicIdentity | StrandlineError
) -> None:
    """Let the time pass until a request is sent, and answer it."""
    clock.sleep(REQUEST_INTERVAL_S)
    watch.check()
    brokers.answer(answer)
    watch.check()


def test_metadata_is_requested_periodically_and_never_concurrently(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    watch.check()
    assert len(brokers.requests) == 0
    clock.sleep(REQUEST_INTERVAL_S)
    watch.check()
    clock.sleep(10 * REQUEST_INTERVAL_S)
    watch.check()
    assert len(brokers.requests) == 1
    brokers.answer(SAME)
    watch.check()
    assert len(brokers.requests) == 1
    clock.sleep(REQUEST_INTERVAL_S)
    watch.check()
    assert len(brokers.requests) == 2


def test_the_first_received_id_is_the_topics(watch: TopicWatch, brokers: Brokers, clock: ManualClock) -> None:
    request_and_answer(watch, brokers, clock, SAME)
    request_and_answer(watch, brokers, clock, SAME)
    with pytest.raises(TopicUnfit, match=r"recreated: its id was id-1 and is now id-2"):
        request_and_answer(watch, brokers, clock, ANOTHER)


def test_another_id_than_the_expected_one_is_an_error(watch: TopicWatch, brokers: Brokers, clock: ManualClock) -> None:
    watch.expect("id-2")
    with pytest.raises(TopicUnfit, match="recreated"):
        request_and_answer(watch, brokers, clock, SAME)


def test_an_answer_to_a_request_before_the_expectation_does_not_count(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    clock.sleep(REQUEST_INTERVAL_S)
    watch.check()
    watch.expect("id-2")
    brokers.answer(SAME)
    watch.check()
    brokers.answer(ANOTHER)
    watch.check()


def missing_for(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock, seconds: int, answer: TopicIdentity | StrandlineError
) -> None:
    """Give this answer once, and then every second for this many seconds. Each results in an unreachable log."""
    request_and_answer(watch, brokers, clock, answer)
    for _ in range(seconds):
        clock.sleep(1)
        watch.check()
        brokers.answer(answer)
        watch.check()
        with pytest.raises(LogUnreachable, match=r"not known partition 3 of topic metrics for \d+ s. After 60 s"):
            watch.require_reachable()


def test_two_answers_without_the_topic_a_second_apart_are_no_error(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    """A broker that has just started knows no topics: the open bucket would be closed for good."""
    missing_for(watch, brokers, clock, 1, no_such_topic("metrics"))
    request_and_answer(watch, brokers, clock, SAME)
    watch.received()
    watch.require_reachable()


def test_a_topic_is_gone_after_a_minute_without_it_in_any_answer(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    missing_for(watch, brokers, clock, 59, no_such_topic("metrics"))
    clock.sleep(1)
    watch.check()
    brokers.answer(no_such_topic("metrics"))
    with pytest.raises(TopicUnfit, match="there is no topic metrics"):
        watch.check()


@pytest.mark.parametrize("between", [SAME, AWAY, ALL_DOWN, "records"])
def test_the_minute_starts_again_with_any_other_answer(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock, between: object
) -> None:
    """A broker that knows the topic, or brokers that don't answer at all."""
    missing_for(watch, brokers, clock, 50, no_such_topic("metrics"))
    if isinstance(between, KafkaError):
        watch.report_error(between)
    elif between == "records":
        watch.received()
    else:
        clock.sleep(1)
        watch.check()
        brokers.answer(between)  # type: ignore[arg-type]
        watch.check()
    missing_for(watch, brokers, clock, 59, no_such_topic("metrics"))


def test_a_missing_partition_is_gone_after_a_minute_too(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    """A broker that lags behind its controller may not know a newly added partition."""
    fewer = TopicIdentity("metrics", "id-1", 2)
    missing_for(watch, brokers, clock, 59, fewer)
    with pytest.raises(TopicUnfit, match="has no partition 3: it has 2"):
        request_and_answer(watch, brokers, clock, fewer)


def test_all_brokers_down_means_unreachable_until_one_sends_a_message(
    watch: TopicWatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watch.report_error(ALL_DOWN)
    for _ in range(2):
        with pytest.raises(LogUnreachable, match="1/1 brokers are down"):
            watch.require_reachable()
    watch.received()
    watch.require_reachable()
    assert caplog.messages == ["topic metrics: 1/1 brokers are down", "topic metrics: the brokers are available again"]


def test_after_an_outage_metadata_is_requested_sooner_and_the_reader_fetches_again(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    watch.report_error(ALL_DOWN)
    clock.sleep(1)
    watch.check()
    brokers.answer(AWAY)
    watch.check()
    with pytest.raises(LogUnreachable, match="no answer"):
        watch.require_reachable()
    assert not watch.must_restart_fetch()
    clock.sleep(1)
    watch.check()
    brokers.answer(SAME)
    watch.check()
    assert watch.must_restart_fetch()
    with pytest.raises(LogUnreachable, match="no answer"):
        watch.require_reachable()
    watch.received()
    watch.require_reachable()
    assert not watch.must_restart_fetch()


def test_a_reader_without_records_after_an_outage_fetches_again_with_growing_pauses(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    """Over a slow network, an answer takes minutes. It needs enough time to arrive."""
    watch.report_error(ALL_DOWN)
    request_and_answer(watch, brokers, clock, SAME)
    begun: list[float] = []
    for second in range(1_000):
        if watch.must_restart_fetch():
            begun.append(second)
        clock.sleep(1)
    assert begun == [0, 5, 15, 35, 75, 155, 315, 615, 915]
    watch.received()
    watch.report_error(ALL_DOWN)
    assert not watch.must_restart_fetch()
    request_and_answer(watch, brokers, clock, SAME)
    assert watch.must_restart_fetch()


def test_an_answer_without_an_outage_does_not_reset_the_reader(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    request_and_answer(watch, brokers, clock, SAME)
    assert not watch.must_restart_fetch()


def test_an_unanswered_request_means_that_the_brokers_are_unreachable(
    watch: TopicWatch, brokers: Brokers, clock: ManualClock
) -> None:
    request_and_answer(watch, brokers, clock, AWAY)
    with pytest.raises(LogUnreachable):
        watch.require_reachable()


def test_one_broker_of_several_may_fail(watch: TopicWatch) -> None:
    watch.report_error(KafkaError(KafkaError._TRANSPORT, "broker 2 has closed the connection"))
    watch.require_reachable()


def test_a_refused_consumer_group_does_not_prevent_reading(watch: TopicWatch) -> None:
    watch.report_error(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "no right to the group"))
    watch.require_reachable()


def test_a_refusal_is_not_hidden_by_a_later_timeout(watch: TopicWatch) -> None:
    watch.report_error(REFUSED)
    watch.report_error(ALL_DOWN)
    with pytest.raises(KafkaRefused, match="wrong password"):
        watch.require_reachable()


def test_raising_the_same_error_repeatedly_does_not_grow_its_traceback(watch: TopicWatch) -> None:
    watch.report_error(ALL_DOWN)
    depths = []
    for _ in range(3):
        with pytest.raises(LogUnreachable) as caught:
            watch.require_reachable()
        depths.append(len(caught.traceback))
    assert depths == depths[:1] * 3

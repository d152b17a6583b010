"""Which topics are suitable."""

import pytest

from strandline.node.shard.kafka_topics import TopicRules, dead_topic, retention_of, unclean_election_warning
from strandline.node.shard.log import TopicUnfit

pytestmark = pytest.mark.unit

HOUR = 3_600_000
NO_LIMIT = str(2**63 - 1)
RULES = TopicRules(HOUR)

BROKERS_TIMES = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete", "retention.ms": "604800000"}
PRODUCERS_TIMES = {**BROKERS_TIMES, "message.timestamp.type": "CreateTime"}


def test_log_append_times_are_accepted_whatever_producers_send() -> None:
    RULES.check("metrics", {**BROKERS_TIMES, "message.timestamp.after.max.ms": NO_LIMIT})


@pytest.mark.parametrize(
    "limits",
    [
        {"message.timestamp.after.max.ms": str(HOUR)},
        {"message.timestamp.after.max.ms": "0"},
        {"message.timestamp.difference.max.ms": str(HOUR)},
        {"message.timestamp.after.max.ms": NO_LIMIT, "message.timestamp.difference.max.ms": str(HOUR)},
        {"message.timestamp.after.max.ms": str(HOUR), "message.timestamp.difference.max.ms": NO_LIMIT},
    ],
)
def test_producers_times_are_accepted_if_they_are_at_most_a_flush_interval_ahead(limits: dict[str, str]) -> None:
    RULES.check("metrics", PRODUCERS_TIMES | limits)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"message.timestamp.after.max.ms": str(HOUR + 1)},
        {"message.timestamp.after.max.ms": NO_LIMIT},
        {"message.timestamp.difference.max.ms": NO_LIMIT},
        # Up to Kafka 3.9 both exist, and the newer one takes precedence.
        {"message.timestamp.after.max.ms": str(2 * HOUR), "message.timestamp.difference.max.ms": str(HOUR)},
    ],
)
def test_producers_times_that_may_be_further_ahead_are_refused(limits: dict[str, str]) -> None:
    """Scenario 18: one record from far in the future."""
    with pytest.raises(TopicUnfit, match=r"metrics.*CreateTime.*from the future"):
        RULES.check("metrics", PRODUCERS_TIMES | limits)


def test_unclean_elections_give_a_warning_with_the_command_that_disables_them_and_no_refusal() -> None:
    unclean = {**BROKERS_TIMES, "unclean.leader.election.enable": "true"}
    RULES.check("metrics", unclean)
    warning = unclean_election_warning("metrics", unclean)
    assert warning.startswith("topic metrics has unclean.leader.election.enable=true")
    command = "kafka-configs.sh --alter --entity-type topics --entity-name metrics --add-config "
    assert f"`{command}unclean.leader.election.enable=false`" in warning
    assert unclean_election_warning("metrics", {**unclean, "unclean.leader.election.enable": "false"}) == ""
    assert unclean_election_warning("metrics", BROKERS_TIMES) == ""


def test_the_remedy_is_a_command() -> None:
    with pytest.raises(TopicUnfit) as caught:
        RULES.check("metrics", {**PRODUCERS_TIMES, "message.timestamp.after.max.ms": NO_LIMIT})
    command = "kafka-configs.sh --alter --entity-type topics --entity-name metrics --add-config "
    assert f"`{command}message.timestamp.type=LogAppendTime`" in caught.value.remedy
    assert f"`{command}message.timestamp.after.max.ms={HOUR}`" in caught.value.remedy


def test_the_remedy_for_an_older_kafka_has_the_older_setting() -> None:
    with pytest.raises(TopicUnfit, match=rf"message\.timestamp\.difference\.max\.ms={HOUR}"):
        RULES.check("metrics", {**PRODUCERS_TIMES, "message.timestamp.difference.max.ms": NO_LIMIT})


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete, compact"])
def test_a_compacted_topic_is_refused(policy: str) -> None:
    with pytest.raises(
        TopicUnfit, match=r"would delete records.*--entity-name metrics --add-config cleanup\.policy=delete"
    ):
        RULES.check("metrics", {**BROKERS_TIMES, "cleanup.policy": policy})


def test_retention_by_time_is_read() -> None:
    assert retention_of(BROKERS_TIMES) == 604_800_000


@pytest.mark.parametrize("settings", [{"retention.ms": "-1"}, {"cleanup.policy": ""}])
def test_a_topic_without_deletion_has_unlimited_retention(settings: dict[str, str]) -> None:
    assert retention_of(BROKERS_TIMES | settings) is None


def test_the_dead_letter_topic_is_named_after_its_topic() -> None:
    assert dead_topic("metrics") == "metrics-dead"

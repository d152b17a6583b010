"""Which errors of ours result from Kafka's."""

import pytest
from confluent_kafka import KafkaError

from strandline.errors import Fatal, Retryable
from strandline.kafka.errors import KafkaFailed, KafkaRefused
from strandline.node.shard.kafka_errors import meaning
from strandline.node.shard.log import LogUnreachable, TopicUnfit

pytestmark = pytest.mark.unit


def of(code: int) -> Fatal | Retryable:
    error = meaning(KafkaError(code), "partition 3 can't be read", "metrics")
    assert isinstance(error, Fatal | Retryable)
    return error


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNKNOWN,
    ],
)
def test_temporary_errors_are_retryable(code: int) -> None:
    error = of(code)
    assert isinstance(error, LogUnreachable)
    assert error.message.startswith("partition 3 can't be read: ")
    assert "kafka.bootstrap_servers" in error.remedy


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (KafkaError._AUTHENTICATION, "kafka.credentials_file"),
        (KafkaError.SASL_AUTHENTICATION_FAILED, "kafka.credentials_file"),
        (KafkaError._SSL, "kafka.tls_"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "READ, DESCRIBE and DESCRIBE_CONFIGS on the topic metrics"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "READ on the consumer groups"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "IDEMPOTENT_WRITE on the cluster"),
    ],
)
def test_a_refusal_names_the_missing_permission_or_wrong_setting(code: int, remedy: str) -> None:
    error = of(code)
    assert isinstance(error, KafkaRefused)
    assert remedy in error.remedy


@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC])
def test_a_missing_topic_is_named_with_the_command_that_creates_it(code: int) -> None:
    error = of(code)
    assert isinstance(error, TopicUnfit)
    assert error.message == "there is no topic metrics"
    assert "kafka-topics.sh --create --topic metrics" in error.remedy


def test_an_error_by_a_policy_of_the_cluster_is_not_retryable() -> None:
    assert isinstance(of(KafkaError.INVALID_REPLICATION_FACTOR), TopicUnfit)


def test_an_unknown_error_of_the_library_is_not_retryable() -> None:
    assert isinstance(of(KafkaError._INVALID_ARG), KafkaFailed)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # The library's texts for a broker that hangs, and for one that answers.
        (
            "SASL PLAIN mechanism handshake failed: Local: Timed out: broker's supported mechanisms: (n/a)",
            LogUnreachable,
        ),
        ("SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism", KafkaRefused),
        ("SASL authentication error: Authentication failed: Invalid username or password", KafkaRefused),
    ],
)
def test_a_broker_that_does_not_answer_a_handshake_is_no_refusal(text: str, kind: type[Exception]) -> None:
    assert type(meaning(KafkaError(KafkaError._AUTHENTICATION, text), "the topic can't be read", "t")) is kind

"""Maps librdkafka errors to the errors of `strandline.kafka.errors`, which say whether a retry may succeed."""
# ruff: noqa: SLF001 - the names of the library's own errors, unlike the brokers', begin with an underscore

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException

from strandline.errors import StrandlineError
from strandline.kafka.errors import KafkaFailed, KafkaRefused, LogUnreachable, TopicMissing, TopicUnfit

ALL_DOWN = KafkaError._ALL_BROKERS_DOWN

_REFUSED = frozenset({
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
})  # fmt: skip
_UNREACHABLE = frozenset({
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._WAIT_COORD,
    KafkaError.UNKNOWN,
})  # fmt: skip
_HANDSHAKE_TIMED_OUT = "handshake failed: Local: Timed out"
NO_SUCH_TOPIC = frozenset({
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
    KafkaError.TOPIC_EXCEPTION,
})  # fmt: skip
"""The broker does not know the topic or partition, possibly only for a moment."""

_NOT_ALLOWED = frozenset({
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
})  # fmt: skip


def mapped_error(error: KafkaError, what: str, topic: str, rights: Mapping[int, str]) -> StrandlineError:
    """The error to raise. `what` says what failed, and is followed by a colon and the library's text. `rights` has the
    remedies for error codes that mean a missing ACL.

    An unknown error of a broker counts as retryable, and an unknown error of the library as fatal.
    """
    code, text = error.code(), f"{what}: {error.str()}"
    # The library also reports a failed authentication if a hanging broker does not answer the handshake. That broker
    # may answer later.
    if code == KafkaError._AUTHENTICATION and _HANDSHAKE_TIMED_OUT in text:
        code = KafkaError._TIMED_OUT
    if code in _REFUSED:
        return KafkaRefused(text, remedy=rights.get(code, _SECURITY))
    if code in NO_SUCH_TOPIC:
        return no_such_topic(topic)
    if code in _NOT_ALLOWED:
        return TopicUnfit(text, remedy="Choose partitions, replicas and settings that the cluster allows")
    if code in _UNREACHABLE or code > 0:
        return LogUnreachable(text, remedy="Check that the brokers run, and kafka.bootstrap_servers")
    return KafkaFailed(text, remedy="Check the table [kafka.client] in the settings")


def no_such_topic(topic: str) -> TopicMissing:
    """The error for a topic that does not exist."""
    return TopicMissing(
        f"there is no topic {topic}",
        remedy=f"Check the name in the settings, or create the topic: `kafka-topics.sh --create --topic {topic} "
        "--partitions N --config message.timestamp.type=LogAppendTime`",
    )


def error_of(failure: KafkaException) -> KafkaError:
    """The error inside the library's exception."""
    error: KafkaError = failure.args[0]
    return error


_SECURITY = "Check kafka.security_protocol, kafka.sasl_mechanism, kafka.credentials_file and the kafka.tls_ files"

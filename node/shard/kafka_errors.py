"""What Kafka's errors mean to a shard, a gateway and their commands, and which right is missing."""
# ruff: noqa: SLF001 - the library begins the names of its own errors, as against the brokers', with an underscore

from confluent_kafka import KafkaError

from strandline.errors import Fatal, StrandlineError
from strandline.kafka import error_mapping

NO_LEADER = KafkaError._NOENT
"""No broker leads the partition, or there is no such partition: the client's answer to a request for offsets."""
STALE_LEADER = frozenset({NO_LEADER, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH})
"""What the client answers from cached metadata, be it long after a broker has begun to lead the partition again."""
END_REACHED = KafkaError._PARTITION_EOF
"""Not an error: the reader has reached what it may see."""
GROUP_REFUSED = KafkaError.GROUP_AUTHORIZATION_FAILED
"""A consumer looks for its group even if it reads by assignment. Without one, only mirrored offsets are missing."""
OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE})
"""The position is not there: with `auto.offset.reset=error` the library gives the first of these for all three."""
DAMAGED = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError._UNDERFLOW})
"""What the broker sent is not what a producer once gave it."""


class LogDamaged(Fatal):
    """Records are there, and their bytes are not those that were produced."""


def meaning(error: KafkaError, what: str, topic: str) -> StrandlineError:
    """The error to raise; `what` says what was tried, and a colon may follow it."""
    return error_mapping.mapped_error(error, what, topic, _rights(topic))


def _rights(topic: str) -> dict[int, str]:
    return {
        KafkaError.TOPIC_AUTHORIZATION_FAILED: f"Give our user READ, DESCRIBE and DESCRIBE_CONFIGS on the topic "
        f"{topic}, and WRITE on {topic}-dead",
        KafkaError.GROUP_AUTHORIZATION_FAILED: "Give our user READ on the consumer groups whose names begin with "
        "`strandline-`",
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Give our user IDEMPOTENT_WRITE on the cluster, and CREATE if it is "
        "to make topics",
    }

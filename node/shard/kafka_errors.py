"""What Kafka's errors mean to a shard, a gateway and their commands, and which right is missing."""
# ruff: noqa: SLF001 - the names of the library's own errors begin with an underscore

from confluent_kafka import KafkaError

from strandline.errors import Fatal, StrandlineError
from strandline.kafka import error_mapping

NO_LEADER = KafkaError._NOENT
"""The client's answer to a request for offsets if no broker leads the partition, or it does not exist."""
STALE_LEADER = frozenset({NO_LEADER, KafkaError.FENCED_LEADER_EPOCH, KafkaError.UNKNOWN_LEADER_EPOCH})
"""The client's errors because of stale cached metadata, possibly long after the partition has a leader again."""
END_REACHED = KafkaError._PARTITION_EOF
"""Not an error: the reader has reached the end of the visible records."""
GROUP_REFUSED = KafkaError.GROUP_AUTHORIZATION_FAILED
"""A consumer looks up its group even if it reads by assignment. Without the permission, only mirrored offsets are
missing.
"""
OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE})
"""The position does not exist. With `auto.offset.reset=error`, the library reports the first of these for all three."""
DAMAGED = frozenset({KafkaError._BAD_MSG, KafkaError._BAD_COMPRESSION, KafkaError._UNDERFLOW})
"""The bytes that the broker sent are not those that were produced."""


class LogDamaged(Fatal):
    """Records in the log are corrupt: their bytes are not those that were produced."""


def meaning(error: KafkaError, what: str, topic: str) -> StrandlineError:
    """The error to raise. `what` describes the failed operation, and may be followed by a colon."""
    return error_mapping.mapped_error(error, what, topic, _rights(topic))


def _rights(topic: str) -> dict[int, str]:
    return {
        KafkaError.TOPIC_AUTHORIZATION_FAILED: f"Grant our user READ, DESCRIBE and DESCRIBE_CONFIGS on the topic "
        f"{topic}, and WRITE on {topic}-dead",
        KafkaError.GROUP_AUTHORIZATION_FAILED: "Grant our user READ on the consumer groups with the prefix "
        "`strandline-`",
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Grant our user IDEMPOTENT_WRITE on the cluster, and CREATE if it "
        "creates topics",
    }

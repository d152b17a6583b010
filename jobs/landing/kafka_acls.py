"""The permissions that landing needs in Kafka, as remedies for authorization errors."""

from confluent_kafka import KafkaError

from strandline.jobs.landing.progress import PartIdentity


def acl_remedies(topic: str, part: PartIdentity | None) -> dict[int, str]:
    """Remedies by error code. Names of parts begin with the dataset, so that one prefixed ACL covers all."""
    names = f"whose names begin with `{part.dataset}.`" if part else "of the dataset's jobs"
    return {
        KafkaError.TOPIC_AUTHORIZATION_FAILED: f"Give our user READ, WRITE and DESCRIBE on the topic {topic}",
        KafkaError.GROUP_AUTHORIZATION_FAILED: f"Give our user READ and DELETE on the consumer groups {names}",
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: f"Give our user WRITE on the transactional ids {names}",
        KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Give our user IDEMPOTENT_WRITE and DESCRIBE_CONFIGS on the cluster",
    }

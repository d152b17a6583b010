"""Errors of what reads from Kafka or writes to it. They don't need the library, so that twins in memory raise them."""

from strandline.errors import Fatal, Retryable


class LogUnreachable(Retryable):
    """The brokers did not answer in time."""


class TopicUnfit(Fatal):
    """There is no such topic or partition, or its settings would break what is promised of it."""


class TopicMissing(TopicUnfit):
    """There is no such topic. For a shard that reads it is final; a start later may find one."""

    transient = True


class KafkaRefused(Fatal):
    """The brokers answered, and will not have us as we are: a wrong password or certificate, or a right that is
    missing.
    """


class KafkaFailed(Fatal):
    """The client library itself gave up, for a reason that does not pass."""

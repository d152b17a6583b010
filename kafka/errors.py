"""Errors of readers and writers of Kafka. They don't import librdkafka, so in-memory counterparts can raise them."""

from strandline.errors import Fatal, Retryable


class LogUnreachable(Retryable):
    """The brokers did not answer in time."""


class TopicUnfit(Fatal):
    """The topic or partition does not exist, or a setting of the topic breaks a guarantee that we give."""


class TopicMissing(TopicUnfit):
    """The topic does not exist. Fatal for the process, but transient: the topic may exist when the process restarts."""

    transient = True


class KafkaRefused(Fatal):
    """The brokers rejected the client: a wrong password or certificate, or a missing ACL."""


class KafkaFailed(Fatal):
    """The client library failed for a reason that a retry does not fix."""

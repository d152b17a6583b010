"""Counts the records of a job in a topic by their headers, reading committed records only."""

from collections import Counter
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from strandline.clock import Clock
from strandline.jobs.landing.kafka_acls import acl_remedies
from strandline.kafka.clients import BrokerErrors, ClientOptions, create_client
from strandline.kafka.error_mapping import error_of, mapped_error
from strandline.kafka.errors import LogUnreachable
from strandline.wire.record_headers import JOB_HEADER, PART_HEADER

_OWN: ClientOptions = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
}
_TIMEOUT_S = 30.0
_BATCH_SIZE, _WAIT_S = 1_000, 0.2


def count_records(options: ClientOptions, topic: str, job: str, since_ms: int, clock: Clock) -> Counter[int]:
    """The number of records by part of a job, among the topic's records since a time. Raises `LogUnreachable` and the
    errors of `strandline.kafka.error_mapping`.
    """
    chosen = {
        **options,
        **_OWN,
        "group.id": f"strandline-verify-{job}",
        "error_cb": BrokerErrors(topic, clock).on_error,
    }
    what, wanted, found = f"topic {topic} can't be read", job.encode(), Counter[int]()
    with closing(create_client(Consumer, chosen)) as consumer:
        try:
            known = consumer.list_topics(topic, _TIMEOUT_S).topics[topic]
            if known.error is not None:
                raise mapped_error(known.error, what, topic, acl_remedies(topic, None))
            partitions = [TopicPartition(topic, number, since_ms) for number in known.partitions]
            consumer.assign(consumer.offsets_for_times(partitions, _TIMEOUT_S))
            at_end = set[int]()
            last_read = clock.monotonic()
            while len(at_end) < len(partitions):
                # Returns when it has this number of messages, or after the time.
                messages = consumer.consume(_BATCH_SIZE, _WAIT_S)
                if messages:
                    last_read = clock.monotonic()
                elif clock.monotonic() - last_read > _TIMEOUT_S:
                    raise LogUnreachable(f"{what}: the brokers have not answered", remedy="Check that they run")
                for message in messages:
                    error = message.error()
                    if error is None:
                        headers = dict(message.headers() or ())
                        if headers.get(JOB_HEADER) == wanted:
                            found[int(headers.get(PART_HEADER) or 0)] += 1
                    elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - a public error code in spite of its name
                        at_end.add(message.partition() or 0)
                    else:
                        raise mapped_error(error, what, topic, acl_remedies(topic, None))
        except KafkaException as failure:
            raise mapped_error(error_of(failure), what, topic, acl_remedies(topic, None)) from failure
    return found

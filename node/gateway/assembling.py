"""Creates the gateway and its components from the settings."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from strandline.clock import Clock
from strandline.node.gateway.broker_clock import BrokerClock
from strandline.node.gateway.gateway import Gateway
from strandline.node.gateway.kafka_producer import Bounds, KafkaProducer, client_factory
from strandline.node.gateway.options import gateway_options
from strandline.node.gateway.topic import KafkaTopicInspector, TopicNeeds, TopicWatch, largest_packed
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.node.settings.units import Duration
from strandline.node.shard.kafka_topics import BROKER_DEFAULT, create_topic

_LOG = structlog.get_logger(__name__)

_KEPT_IN_KAFKA = Duration.parse("7d")


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """The gateway and its topic watch, which has been refreshed once."""

    gateway: Gateway
    topic: TopicWatch


@contextmanager
def open_gateway(settings: Settings, clock: Clock) -> Iterator[GatewayParts]:
    """A gateway that is ready to serve. Raises an error if the topic is not usable. If brokers don't answer or the
    topic does not exist yet, the gateway waits for that while it serves. The caller must close the gateway itself, in
    its event loop.
    """
    options, kafka = gateway_options(settings), librdkafka_options(settings.kafka)
    topic = settings.dataset.topic_name
    needs = TopicNeeds(settings.dataset.flush_interval.milliseconds, options.max_record)
    inspector = KafkaTopicInspector(kafka, topic, needs)
    watches: list[TopicWatch] = []

    def on_trouble() -> None:
        for each in watches:
            each.refresh_soon()

    broker_clock = BrokerClock(clock)
    producer = KafkaProducer(
        client_factory(kafka, Bounds(options.timeout_s, options.max_in_flight, largest_packed(options.max_record))),
        topic,
        broker_clock,
        on_trouble=on_trouble,
    )
    watch = TopicWatch(inspector, producer, options.partitions_refresh_s)
    watches.append(watch)
    gateway = Gateway(options, producer, watch, clock, broker_clock)
    try:
        watch.start()
        gateway.warm_up()
        yield GatewayParts(gateway, watch)
    finally:
        watch.close()
        producer.close(0.0)


def make_topic(settings: Settings, partitions: int) -> bool:
    """Create the topic with this number of partitions, and with the broker's time as record time. Returns False, and
    changes nothing, if the topic exists. Raises `LogUnreachable` if the brokers don't answer.
    """
    retention = settings.dataset.kafka_retention or _KEPT_IN_KAFKA
    name = settings.dataset.topic_name
    made = create_topic(
        librdkafka_options(settings.kafka),
        name,
        partitions=partitions,
        replication=BROKER_DEFAULT,
        retention_ms=retention.milliseconds,
    )
    if made:
        _LOG.info("topic created", topic=name, partitions=partitions, retention=str(retention))
    else:
        _LOG.info("the topic already exists, and is not changed", topic=name)
    return made

"""Which shards a node serves: those of the topic's partitions that the settings list."""

from collections.abc import Callable
from contextlib import closing

from strandline.errors import ExitCode, Fatal
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.fields import parse_shard_list
from strandline.node.settings.sections import Settings
from strandline.node.shard.kafka_admin import KafkaAdmin

CountPartitions = Callable[[Settings], int]
"""Counts the partitions of the dataset's topic. Raises, among others, `LogUnreachable` and `TopicMissing`, after which
counting can be retried.
"""


class ListedShardMissing(Fatal):
    """The settings list a shard for which the topic has no partition."""

    exit_code = ExitCode.USAGE


def count_partitions(settings: Settings) -> int:
    """Ask the brokers."""
    with closing(KafkaAdmin(librdkafka_options(settings.kafka), settings.dataset.topic_name)) as admin:
        return admin.identity().partitions


def served_shards(settings: Settings, partitions: int) -> tuple[int, ...]:
    """The shards of this node, in order. Raises `ListedShardMissing`."""
    shards = parse_shard_list(settings.node.shards, partitions)
    missing = [shard for shard in shards if shard >= partitions]
    if missing:
        raise ListedShardMissing(
            f'node.shards is "{settings.node.shards}", but topic {settings.dataset.topic_name} has {partitions} '
            f"partitions: there is no shard {', '.join(map(str, missing[:5]))}{' ...' if missing[5:] else ''}",
            remedy=f"List shards from 0 to {partitions - 1}, or add partitions to the topic",
        )
    return shards


def serves_all(settings: Settings) -> bool:
    """Whether the node also serves partitions that are added later."""
    return settings.node.shards.strip().lower() == "all"

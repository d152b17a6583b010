"""The topics that a dataset needs: checks whether a topic is suitable, and creates ours."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

from strandline.clock import Clock, SystemClock, wait_until
from strandline.kafka.clients import ClientOptions
from strandline.node.shard.kafka_admin import KafkaAdmin
from strandline.node.shard.log import LogUnreachable, TopicUnfit

TimestampType = Literal["CreateTime", "LogAppendTime"]

_TYPE = "message.timestamp.type"
_AFTER = "message.timestamp.after.max.ms"
_DIFFERENCE = "message.timestamp.difference.max.ms"
"""The name of `_AFTER` before Kafka 3.6. Up to Kafka 3.9, both exist, and `_AFTER` takes precedence if it is set."""
_CLEANUP, _RETENTION, _MAX_BYTES = "cleanup.policy", "retention.ms", "max.message.bytes"
_UNCLEAN = "unclean.leader.election.enable"
_NO_LIMIT = 2**63 - 1

# The size of headers and of a batch without its records.
_DEAD_LETTER_OVERHEAD = 64 << 10
_VISIBLE_WITHIN_S = 30.0


BROKER_DEFAULT = -1
"""The number of replicas in the brokers' settings."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """The properties of a topic on which a shard's options depend. `retention_ms` is None for unlimited retention.
    `warning` describes a setting that puts records at risk, with the command to fix it; empty if there is none.
    """

    topic_id: str
    partitions: int
    retention_ms: int | None
    timestamp_type: TimestampType
    warning: str = ""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """The requirements on a topic's settings, for this flush interval."""

    flush_interval_ms: int

    def check(self, topic: str, settings: Mapping[str, str]) -> None:
        """Raises `TopicUnfit`, with the command to fix the setting."""
        if "compact" in _policies(settings):
            raise TopicUnfit(
                f"topic {topic} has {_CLEANUP}={settings[_CLEANUP]}: compaction would delete records before they are "
                "read",
                remedy=_alter_command(topic, f"{_CLEANUP}=delete"),
            )
        if settings.get(_TYPE) == "LogAppendTime":
            return
        limit = _furthest_ahead(settings)
        if limit > self.flush_interval_ms:
            shown = "any time" if limit == _NO_LIMIT else f"{limit} ms"
            name = _AFTER if _AFTER in settings else _DIFFERENCE
            raise TopicUnfit(
                f"topic {topic} has {_TYPE}=CreateTime and accepts producers' times up to {shown} ahead, more than the "
                f"flush interval, {self.flush_interval_ms} ms: one record from the future would close all buckets "
                "before its time",
                remedy=f"Make the brokers set the times: {_alter_command(topic, f'{_TYPE}=LogAppendTime')}; "
                "or limit the producers' times: "
                f"{_alter_command(topic, f'{name}={self.flush_interval_ms}')}",
            )


def check_topic(options: ClientOptions, topic: str, flush_interval_ms: int) -> TopicFacts:
    """The properties of a topic. Raises `TopicMissing`, and `TopicUnfit` if reading it would violate a guarantee."""
    with closing(KafkaAdmin(options, topic)) as admin:
        identity, settings = admin.identity(), admin.settings()
    TopicRules(flush_interval_ms).check(topic, settings)
    return TopicFacts(
        identity.topic_id,
        identity.partitions,
        retention_of(settings),
        _timestamp_type(settings),
        unclean_election_warning(topic, settings),
    )


def create_topic(
    options: ClientOptions,
    topic: str,
    *,
    partitions: int,
    replication: int,
    retention_ms: int | None,
    clock: Clock | None = None,
) -> bool:
    """Create a topic with record times from the brokers, and wait until it is visible. Returns False, and changes
    nothing, if a topic with this name exists. `retention_ms` None means unlimited.
    """
    settings = {_TYPE: "LogAppendTime", **_retention_settings(retention_ms, replication)}
    with closing(KafkaAdmin(options, topic)) as admin:
        return _create(admin, partitions, replication, settings, clock or SystemClock())


def create_dead_topic(
    options: ClientOptions, topic: str, *, replication: int, retention_ms: int | None, clock: Clock | None = None
) -> bool:
    """Create the dead-letter topic of an existing topic, unless it exists. Returns whether it was created.

    Its size limit is that of the topic plus the added headers.
    """
    with closing(KafkaAdmin(options, topic)) as admin:
        largest = int(admin.settings()[_MAX_BYTES]) + _DEAD_LETTER_OVERHEAD
    settings = {_MAX_BYTES: str(min(largest, 2**31 - 1)), **_retention_settings(retention_ms, replication)}
    with closing(KafkaAdmin(options, dead_topic(topic))) as admin:
        return _create(admin, 1, replication, settings, clock or SystemClock())


def unclean_election_warning(topic: str, settings: Mapping[str, str]) -> str:
    """A warning if a replica that lacks acknowledged records may become the leader; empty if not. A topic inherits the
    setting from its brokers.
    """
    if settings.get(_UNCLEAN, "false") != "true":
        return ""
    return (
        f"topic {topic} has {_UNCLEAN}=true: after a failure of its brokers, acknowledged records may be lost and "
        f"replaced by others, which can't always be detected. {_alter_command(topic, f'{_UNCLEAN}=false')}"
    )


def dead_topic(topic: str) -> str:
    """The name of the topic for those records of a topic that can't be decoded."""
    return f"{topic}-dead"


def retention_of(settings: Mapping[str, str]) -> int | None:
    """A topic's retention by time in milliseconds; None if unlimited."""
    retention = int(settings[_RETENTION])
    return retention if retention >= 0 and "delete" in _policies(settings) else None


def _create(admin: KafkaAdmin, partitions: int, replication: int, settings: Mapping[str, str], clock: Clock) -> bool:
    if not admin.create(partitions, replication, settings):
        return False
    # The controller has created it; the brokers learn of it one by one.
    if not wait_until(lambda: _is_visible(admin), timeout=_VISIBLE_WITHIN_S, clock=clock):
        raise LogUnreachable(f"topic {admin.topic} was created, but is not visible after {_VISIBLE_WITHIN_S:.0f} s")
    return True


def _is_visible(admin: KafkaAdmin) -> bool:
    try:
        admin.identity()
    except TopicUnfit:
        return False
    return True


def _retention_settings(retention_ms: int | None, replication: int) -> dict[str, str]:
    settings = {_CLEANUP: "delete", _RETENTION: str(-1 if retention_ms is None else retention_ms)}
    if replication == BROKER_DEFAULT:
        return settings
    # With three replicas, acknowledged records survive the loss of one broker.
    return settings | {"min.insync.replicas": str((replication + 1) // 2)}


def _policies(settings: Mapping[str, str]) -> set[str]:
    return {policy.strip() for policy in settings.get(_CLEANUP, "delete").split(",")}


def _timestamp_type(settings: Mapping[str, str]) -> TimestampType:
    return "LogAppendTime" if settings.get(_TYPE) == "LogAppendTime" else "CreateTime"


def _furthest_ahead(settings: Mapping[str, str]) -> int:
    after = int(settings.get(_AFTER, _NO_LIMIT))
    return after if after != _NO_LIMIT else int(settings.get(_DIFFERENCE, _NO_LIMIT))


def _alter_command(topic: str, setting: str) -> str:
    return f"`kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {setting}`"

"""The topics that a dataset needs: whether one is fit to be read, and how ours are made."""

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
"""What `_AFTER` was called before Kafka 3.6; both are there up to Kafka 3.9, and `_AFTER` counts if it was set."""
_CLEANUP, _RETENTION, _MAX_BYTES = "cleanup.policy", "retention.ms", "max.message.bytes"
_UNCLEAN = "unclean.leader.election.enable"
_NO_LIMIT = 2**63 - 1

# Headers, and what a batch has around its records.
_DEAD_LETTER_OVERHEAD = 64 << 10
_VISIBLE_WITHIN_S = 30.0


BROKER_DEFAULT = -1
"""As many replicas as the brokers' own settings say."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a shard's options depend on. `retention_ms` is None for a topic that keeps its records for ever. `warning`
    names what puts records at risk, with the command that helps; empty if nothing does.
    """

    topic_id: str
    partitions: int
    retention_ms: int | None
    timestamp_type: TimestampType
    warning: str = ""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What a topic's settings must be like for buckets of this length."""

    flush_interval_ms: int

    def check(self, topic: str, settings: Mapping[str, str]) -> None:
        """Raises `TopicUnfit`, with the command that helps."""
        if "compact" in _policies(settings):
            raise TopicUnfit(
                f"topic {topic} has {_CLEANUP} {settings[_CLEANUP]}: records would go missing before they are read",
                remedy=_alter_command(topic, f"{_CLEANUP}=delete"),
            )
        if settings.get(_TYPE) == "LogAppendTime":
            return
        limit = _furthest_ahead(settings)
        if limit > self.flush_interval_ms:
            shown = "any time" if limit == _NO_LIMIT else f"{limit} ms"
            name = _AFTER if _AFTER in settings else _DIFFERENCE
            raise TopicUnfit(
                f"topic {topic} has {_TYPE} CreateTime and lets producers' times be {shown} ahead, which is more than "
                f"the flush interval, {self.flush_interval_ms} ms: one record from the future would close every "
                "bucket up to its date",
                remedy=f"Let brokers set the times: {_alter_command(topic, f'{_TYPE}=LogAppendTime')}; "
                "or limit producers': "
                f"{_alter_command(topic, f'{name}={self.flush_interval_ms}')}",
            )


def check_topic(options: ClientOptions, topic: str, flush_interval_ms: int) -> TopicFacts:
    """Ask the brokers about a topic. Raises `TopicMissing`, or `TopicUnfit` if reading it would break a promise."""
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
    """Make a topic whose record times are the brokers' own, and return once it can be looked up; False, with nothing
    changed, if there is one by that name. `retention_ms` None is for ever.
    """
    settings = {_TYPE: "LogAppendTime", **_retention_settings(retention_ms, replication)}
    with closing(KafkaAdmin(options, topic)) as admin:
        return _create(admin, partitions, replication, settings, clock or SystemClock())


def create_dead_topic(
    options: ClientOptions, topic: str, *, replication: int, retention_ms: int | None, clock: Clock | None = None
) -> bool:
    """Make the dead-letter topic of a topic that is there, unless it has one: whether it was made.

    It takes whatever the topic itself takes, with the headers that are added.
    """
    with closing(KafkaAdmin(options, topic)) as admin:
        largest = int(admin.settings()[_MAX_BYTES]) + _DEAD_LETTER_OVERHEAD
    settings = {_MAX_BYTES: str(min(largest, 2**31 - 1)), **_retention_settings(retention_ms, replication)}
    with closing(KafkaAdmin(options, dead_topic(topic))) as admin:
        return _create(admin, 1, replication, settings, clock or SystemClock())


def unclean_election_warning(topic: str, settings: Mapping[str, str]) -> str:
    """A warning if a replica that lacks acknowledged records may become the leader; empty if none may. A topic without
    the setting has that of its brokers.
    """
    if settings.get(_UNCLEAN, "false") != "true":
        return ""
    return (
        f"topic {topic} has {_UNCLEAN}=true: after a failure of its brokers acknowledged records may be gone, and "
        f"others have their offsets, which can't always be noticed. {_alter_command(topic, f'{_UNCLEAN}=false')}"
    )


def dead_topic(topic: str) -> str:
    """Where the records of a topic go that can't be decoded."""
    return f"{topic}-dead"


def retention_of(settings: Mapping[str, str]) -> int | None:
    """How many milliseconds a topic keeps its records for, by time; None for ever."""
    retention = int(settings[_RETENTION])
    return retention if retention >= 0 and "delete" in _policies(settings) else None


def _create(admin: KafkaAdmin, partitions: int, replication: int, settings: Mapping[str, str], clock: Clock) -> bool:
    if not admin.create(partitions, replication, settings):
        return False
    # The controller has made it; the brokers hear of it one by one.
    if not wait_until(lambda: _is_visible(admin), timeout=_VISIBLE_WITHIN_S, clock=clock):
        raise LogUnreachable(f"topic {admin.topic} was made, but can't be looked up after {_VISIBLE_WITHIN_S:.0f} s")
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
    # What is acknowledged outlives the loss of one broker wherever there are three replicas.
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

"""A partition of a real Kafka topic.

Properties, tested with committed, aborted and open transactions:

- All visible records below the position have been returned. The position moves past each returned record and, if no
  visible record follows, to the last stable offset: the library reports with an event that the end is reached, even if
  only markers and aborted records are before it. This event arrives with the next fetch, within `fetch.wait.max.ms`.
  So once all visible records are read, a poll returns the last stable offset as the position.
- At an open transaction, the position stays at its first record until the transaction ends.
- A lookup by time sees all stable offsets: the first offset with such a time may be an aborted record or a
  transaction's marker. No visible record is between it and the first visible one.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import cast

import numpy as np
from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    Message,
    TopicPartition,
)

from strandline.clock import SystemClock, wait_until
from strandline.kafka.clients import ClientOptions, create_client
from strandline.node.shard.kafka_admin import KafkaAdmin, PendingEnds
from strandline.node.shard.kafka_errors import DAMAGED, END_REACHED, GROUP_REFUSED, OUT_OF_RANGE, LogDamaged, meaning
from strandline.node.shard.kafka_watch import GONE_AFTER_S, REQUEST_INTERVAL_S, TopicWatch
from strandline.node.shard.log import NO_TIME, LogEnds, LogUnreachable, OffsetGone, Records, TopicUnfit
from strandline.wire.record_headers import are_times_checked

_LOG = logging.getLogger(__name__)

# Operators can override these in kafka.client.
_TUNING: ClientOptions = {
    # About forty records of 100 KB per fetch. Larger records are still fetched.
    "fetch.message.max.bytes": 4 << 20,
    # Prefetched records per shard while a batch is decoded. With one more fetch, this limits the library's memory to
    # about 36 MB, some 0.3 s of reading at full speed.
    "queued.max.messages.kbytes": 32 << 10,
    # The pause when the queue is full. With the library's default, a second, a fast reader mostly waits: 45 MB/s
    # instead of 130 MB/s with the queue above.
    "fetch.queue.backoff.ms": 20,
    # How long a broker delays the answer to a fetch if there are no records. A seek and the event of the end wait for
    # it, so it is short. Ten requests a second from an idle shard are negligible for a broker.
    "fetch.wait.max.ms": 100,
    # The library's default is twenty attempts a second while a broker is unreachable.
    "reconnect.backoff.ms": 500,
    # The default is up to 15 s, in which a broker that is available again is not read from.
    "reconnect.backoff.max.ms": 2_000,
    # Otherwise a flipped bit on a broker's disk could become samples. The cost was not measurable.
    "check.crcs": True,
}

# The reading thread waits for it, so it is short.
_DIAGNOSIS_TIMEOUT_S = 3.0

_OWN: ClientOptions = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    # We control the position: if it can't be read from, this is an error.
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
}


class KafkaLog:
    """The `PartitionLog` of one partition. Sends no request before the first call.

    Call `seek` before the first `poll`. While reading, it also detects within seconds if the topic was recreated since
    `topic_id` was last called, and within about a minute if it was deleted: `poll` then raises `TopicUnfit`.
    """

    def __init__(
        self,
        options: ClientOptions,
        *,
        dataset: str,
        topic: str,
        partition: int,
        watch_every: float = REQUEST_INTERVAL_S,
        gone_after: float = GONE_AFTER_S,
    ) -> None:
        """`options` are those of `librdkafka_options`. Raises `KafkaFailed` if the library rejects them."""
        self._topic, self._partition = topic, partition
        self._group = f"strandline-{dataset}"
        self._clock = SystemClock()
        self._admin = KafkaAdmin(options, topic)
        self._watch = TopicWatch(self._admin, partition, self._clock, watch_every, gone_after)
        own = {**_OWN, "group.id": self._group, "client.id": f"{self._group}-{partition}"}
        self._consumer = create_client(Consumer, {**_TUNING, **options, **own, "error_cb": self._watch.report_error})
        self._position: int | None = None
        self._needs_seek = False
        """Whether the consumer must seek to the position before it can be polled."""
        self._failure: KafkaError | None = None
        """An error that followed records, which are returned first."""
        self._closed = False

    def topic_id(self) -> str:
        identity = self._admin.identity()
        identity.require(self._partition)
        self._watch.expect(identity.topic_id)
        return identity.topic_id

    def ends(self) -> LogEnds:
        # Sequentially and in this order, so that start <= last_stable <= high even if the log moves meanwhile, and
        # last_stable == high means that no transaction was open.
        start = self._admin.start(self._partition)
        last_stable = self._admin.end(self._partition, IsolationLevel.READ_COMMITTED)
        high = self._admin.end(self._partition, IsolationLevel.READ_UNCOMMITTED)
        return LogEnds(start, last_stable, high)

    def request_ends(self) -> PendingEnds:
        return self._admin.request_ends(self._partition, self._clock)

    def offset_at(self, time: int) -> int | None:
        return self._admin.at(self._partition, time)

    def seek(self, offset: int) -> None:
        self._position, self._failure = offset, None
        self._needs_seek = True

    def poll(self, max_records: int, timeout: float) -> Records:
        if self._closed or self._position is None:
            raise RuntimeError("the log is closed" if self._closed else "poll was called before seek")
        self._admin.serve()
        self._watch.check()
        self._raise_failure()
        if self._watch.must_restart_fetch():
            self._needs_seek = True
        if self._needs_seek:
            # Not the consumer's own seek, which fails right after an assignment, and if the partition has stopped
            # because of an error.
            self._consumer.assign([TopicPartition(self._topic, self._partition, self._position)])
            self._needs_seek = False
        deadline = self._clock.monotonic() + timeout
        while True:
            left = max(0.0, deadline - self._clock.monotonic())
            if taken := self._records_of(self._fetched(max_records, left)):
                return _records(taken, self._position)
            self._raise_failure()
            if self._clock.monotonic() >= deadline:
                break
        self._watch.require_reachable()
        return Records.none(self._position)

    def mirror(self, offset: int) -> None:
        log_refusal = partial(_log_if_refused, self._group)
        self._admin.request_commit(self._group, self._partition, offset).add_done_callback(log_refusal)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._consumer.close()
            self._admin.close()

    def _fetched(self, max_records: int, timeout: float) -> Sequence[Message]:
        """The fetched messages: records and events. Empty only after the timeout."""
        # Wait for the first message, then take what follows without waiting: waiting for a batch would return only
        # when the batch is full or the timeout is over, even if there are records.
        first = self._consumer.poll(timeout)
        if first is None:
            return ()
        return [first, *self._consumer.consume(max_records - 1, 0)] if max_records > 1 else [first]

    def _records_of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The records among the messages, up to the first error. Moves the position past them."""
        records: list[Message] = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
                self._position = _offset(message) + 1
            elif error.code() == END_REACHED:
                self._watch.received()
                self._position = _offset(message)
            elif error.code() == GROUP_REFUSED:
                self._watch.report_error(error)
            else:
                # What follows is fetched again after the error was raised.
                self._failure, self._needs_seek = error, True
                break
        if records:
            self._watch.received()
        return records

    def _raise_failure(self) -> None:
        error, self._failure = self._failure, None
        if error is None:
            return
        where = f"partition {self._partition} of topic {self._topic}"
        if error.code() in OUT_OF_RANGE:
            raise self._out_of_range(where, error)
        if error.code() in DAMAGED:
            raise LogDamaged(
                f"{where} can't be read at offset {self._position}: {error.str()}",
                remedy="The broker's disk or network corrupts data: make another replica the leader of the partition",
            )
        cause = meaning(error, f"{where} can't be read at offset {self._position}", self._topic)
        raise self._watch.not_found(cause) if isinstance(cause, TopicUnfit) else cause

    def _out_of_range(self, where: str, error: KafkaError) -> OffsetGone:
        """The error for a position that the log does not have. Raises `TopicUnfit` if the topic was recreated, and
        `LogUnreachable` if the brokers don't answer soon; then the next poll gets the same error.
        """
        identity, ends = self._admin.request_identity(), self.request_ends()
        found: LogEnds | None = None

        def is_answered() -> bool:
            nonlocal found
            found = found or ends.answer()
            return found is not None and identity.done()

        if not wait_until(is_answered, timeout=_DIAGNOSIS_TIMEOUT_S, clock=self._clock, poll=0.005) or found is None:
            raise LogUnreachable(
                f"{where} can't be read at offset {self._position}, and the brokers did not answer where it begins and "
                "ends",
                remedy="Check that the brokers run",
            )
        try:
            topic = self._admin.identity_in(identity)
        except TopicUnfit as unfit:
            raise self._watch.not_found(unfit) from unfit
        # The most likely cause is a recreated topic, which is a more helpful error than two offsets.
        self._watch.compare(topic)
        return _gone(where, self._position or 0, found, error)


def _records(messages: Sequence[Message], position: int) -> Records:
    count = len(messages)
    return Records(
        np.fromiter(map(_offset, messages), dtype=np.int64, count=count),
        np.fromiter(map(_time, messages), dtype=np.int64, count=count),
        np.fromiter(map(_leader_epoch, messages), dtype=np.int64, count=count),
        np.fromiter((are_times_checked(message.headers()) for message in messages), dtype=np.bool_, count=count),
        # A record without a value can't be decoded.
        [message.value() or b"" for message in messages],
        position,
    )


def _offset(message: Message) -> int:
    # A message from the library always has an offset.
    return cast("int", message.offset())


def _time(message: Message) -> int:
    kind, time = message.timestamp()
    return NO_TIME if kind == TIMESTAMP_NOT_AVAILABLE else time


def _leader_epoch(message: Message) -> int:
    epoch = message.leader_epoch()
    return -1 if epoch is None else epoch


def _gone(where: str, position: int, ends: LogEnds, error: KafkaError) -> OffsetGone:
    if position < ends.start:
        return OffsetGone(
            f"{where}: offset {position} was deleted, the log begins at {ends.start}",
            remedy=f"Kafka has deleted the records of [{position}, {ends.start}) after its retention. To continue "
            "without them, accept the loss",
        )
    if position > ends.high:
        return OffsetGone(
            f"{where}: offset {position} is after the end of the log, {ends.high}",
            remedy="The topic was recreated, or brokers have lost records. To continue, accept a reset",
        )
    return OffsetGone(
        f"{where}: offset {position} can't be read from, though the log has [{ends.start}, {ends.high}): {error.str()}",
        remedy="Brokers have lost records and replaced them by others. To continue, accept a reset",
    )


def _log_if_refused(group: str, answer: "Future[ConsumerGroupTopicPartitions]") -> None:
    """Called by a thread of the library. Not a method: a reference to the log would make this thread close it."""
    failure = answer.exception()
    refused = [] if failure else [place.error for place in answer.result().topic_partitions or () if place.error]
    if failure or refused:
        _LOG.warning("the offset of group %s could not be committed: %s", group, failure or refused[0])

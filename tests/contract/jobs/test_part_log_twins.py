"""Behaviour that only one of the part logs can show: in memory without waiting, or with real brokers."""

from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from strandline.clock import SystemClock
from strandline.errors import Fatal
from strandline.jobs.landing.kafka_part_log import KafkaTransactions
from strandline.jobs.landing.packing import PackedRecord
from strandline.jobs.landing.part_log import DeadlinePassed, OffsetExpired, PartLog
from strandline.jobs.landing.progress import Landed, PartIdentity, ProgressUnreadable
from strandline.jobs.landing.transactions import LandingUnknown, OffsetUnstable, RecordsRefused
from strandline.kafka.errors import KafkaRefused, LogUnreachable, TopicUnfit
from support.guarded_kafka import GUEST, GuardedKafka
from support.part_logs import (
    PARTITIONS,
    KafkaWorld,
    Killed,
    MemoryWorld,
    begin,
    kill,
    land,
    landed,
    partitions_of,
    progress_behind,
    records_of,
    samples,
    samples_by_chunk,
)
from support.real_kafka import TIMEOUT, TemporaryTopic, eventually

pytestmark = pytest.mark.contract


def test_an_offset_that_stays_unstable_until_the_deadline_fails_the_begin(
    memory: MemoryWorld, part: PartIdentity
) -> None:
    memory.cluster.unstable_reads = 10**9
    log = memory.open_log()
    begin(log, part)
    land(log, 0)
    with pytest.raises(OffsetUnstable):
        log.begin(part, first_begun_ms=None, deadline=memory.clock.monotonic() + 1)


def test_an_expired_offset_is_detected(memory: MemoryWorld, part: PartIdentity) -> None:
    log, begun_at_ms = memory.open_log(), memory.clock.now_ms()
    begin(log, part)
    land(log, 0)
    memory.clock.sleep(8 * 24 * 3600)
    with pytest.raises(OffsetExpired):
        begin(log, part, begun_at_ms)
    assert samples(memory, part) == {0: 10}


def test_a_transaction_that_takes_too_long_is_aborted_and_its_holder_fenced(
    memory: MemoryWorld, part: PartIdentity
) -> None:
    log = memory.open_log(after={"send": lambda: memory.clock.sleep(11)})
    begin(log, part)
    with pytest.raises(DeadlinePassed):
        land(log, 0)
    assert samples(memory, part) == {}
    assert begin(log, part) == Landed()


def test_an_abandoned_transaction_holds_readers_back_until_its_time_out(
    memory: MemoryWorld, part: PartIdentity
) -> None:
    log = memory.open_log(after={"send": kill})
    begin(log, part)
    with suppress(Killed):
        land(log, 0)
    other = PartIdentity(part.dataset, "other", 0)
    others = memory.open_log()
    begin(others, other)
    land(others, 0)
    assert not any(memory.cluster.read().values())
    memory.clock.sleep(11)
    assert samples_by_chunk(memory.committed()) == {("other", 0, 0): 10}


@pytest.mark.parametrize(
    ("step", "error"),
    [("hold", LogUnreachable), ("committed", LogUnreachable), ("send", LogUnreachable), ("commit", LandingUnknown)],
)
def test_brokers_that_become_unreachable_at_any_step_cause_no_duplicates(
    memory: MemoryWorld, part: PartIdentity, step: str, error: type[Exception]
) -> None:
    def go() -> None:
        memory.cluster.reachable = False

    log = memory.open_log(before={step: go})

    def begin_and_land() -> None:
        begin(log, part)
        land(log, 0)

    with pytest.raises(error):
        begin_and_land()
    memory.cluster.reachable = True
    other = memory.open_log()
    assert begin(other, part) == Landed()
    land(other, 0)
    assert samples(memory, part) == {0: 10}


def test_the_twin_loses_the_answer_of_a_commit(memory: MemoryWorld, part: PartIdentity) -> None:
    memory.cluster.lost_answers = 1
    log = memory.open_log()
    begin(log, part)
    with pytest.raises(LandingUnknown):
        land(log, 0)
    assert begin(log, part) == landed(1)


def test_an_unknown_partition_is_named(kafka: KafkaWorld, part: PartIdentity) -> None:
    log = kafka.open_log()
    begin(log, part)
    with pytest.raises(TopicUnfit, match="knows no partition"):
        land(log, 0, samples=100, partitions=PARTITIONS + 2)
    begin(log, part)
    land(log, 0)
    assert samples(kafka, part) == {0: 10}


def test_a_record_that_is_too_large_for_the_topic_is_refused_by_name(kafka: KafkaWorld, part: PartIdentity) -> None:
    log = kafka.open_log()
    begin(log, part)
    large = PackedRecord(0, bytes(2_000_000), 1, 1)
    with pytest.raises(RecordsRefused, match="too large"):
        log.land(0, [*records_of(0), large], progress_behind(0), kafka.clock.monotonic() + 60)
    assert begin(log, part) == Landed()
    land(log, 0)
    assert samples(kafka, part) == {0: 10}


def test_an_offset_that_another_program_committed_is_not_taken_for_progress(
    kafka: KafkaWorld, part: PartIdentity
) -> None:
    transactions = kafka.transactions()
    transactions.hold(part, 20)
    transactions.begin()
    transactions.send_offset(5, "whatever", 20)
    transactions.commit(20)
    with pytest.raises(ProgressUnreadable, match="'whatever'"):
        begin(kafka.open_log(), part)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    with closing(GuardedKafka(tmp_path_factory.mktemp("guarded"))) as kafka:
        yield kafka


def test_a_missing_acl_is_named_and_the_named_acls_suffice(guarded: GuardedKafka, part: PartIdentity) -> None:
    topic = TemporaryTopic(guarded.client(), {})
    clock = SystemClock()

    def try_all() -> None:
        guest = {**guarded.client(GUEST), "log_level": 0}
        with closing(KafkaTransactions(guest, topic.name, clock)) as transactions:
            log = PartLog(transactions, clock)
            begin(log, part)
            begin(log, part, clock.now_ms())
            land(log, 0, partitions=partitions_of(log))
            log.delete_group(part)

    def grant(kind: ResourceType, name: str, *operations: AclOperation) -> None:
        pattern = ResourcePatternType.PREFIXED if name.endswith(".") else ResourcePatternType.LITERAL
        for operation in operations:
            rule = AclBinding(kind, name, pattern, f"User:{GUEST}", "*", operation, AclPermissionType.ALLOW)
            topic.admin.create_acls([rule])[rule].result(TIMEOUT)

    def refusal() -> str:
        with pytest.raises(KafkaRefused) as caught:
            try_all()
        assert isinstance(caught.value, Fatal)
        return caught.value.remedy

    def next_refusal(words: str) -> None:
        # The broker applies a new ACL with a delay.
        eventually(lambda: words in refusal())

    next_refusal(f"READ, WRITE and DESCRIBE on the topic {topic.name}")
    grant(ResourceType.TOPIC, topic.name, AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE)
    next_refusal("WRITE on the transactional ids whose names begin with `contract.`")
    grant(ResourceType.TRANSACTIONAL_ID, "contract.", AclOperation.WRITE)
    next_refusal("READ and DELETE on the consumer groups whose names begin with `contract.`")
    grant(ResourceType.GROUP, "contract.", AclOperation.READ, AclOperation.DELETE)
    next_refusal("DESCRIBE_CONFIGS on the cluster")
    grant(ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS)

    def works() -> bool:
        try:
            try_all()
        except KafkaRefused:
            return False
        return True

    eventually(works)


def test_a_twin_without_acls_raises_the_same_error(memory: MemoryWorld, part: PartIdentity) -> None:
    memory.cluster.refuses = True
    with pytest.raises(KafkaRefused):
        begin(memory.open_log(), part)

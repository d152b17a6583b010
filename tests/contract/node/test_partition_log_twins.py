"""For any operations of producers, a reader of Kafka and a reader of the log in memory see the same."""

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.node.stack import Stack
from support.partition_logs import (
    KafkaPartition,
    MemoryPartition,
    Partition,
    Transaction,
    answered,
    offsets,
    read_on,
    values,
)

pytestmark = pytest.mark.contract

NOON = 1_700_000_000_000
PRODUCERS = 2

# A record outside of transactions, a record of a transaction (which it begins), the end of a transaction, or a read.
steps = st.one_of(
    st.tuples(st.just("plain"), st.just(0)),
    st.tuples(st.sampled_from(["append", "commit", "abort"]), st.integers(0, PRODUCERS - 1)),
    st.tuples(st.just("read"), st.integers(1, 4)),
)


def seen(partition: Partition, script: list[tuple[str, int]]) -> list[object]:
    """What a reader sees at each read: records, its position, and the ends of the log."""
    log = partition.log
    turns: list[object] = []
    opened: dict[int, Transaction] = {}
    log.seek(0)
    for number, (step, which) in enumerate([*script, ("read", 100)]):
        value, time = b"value %d" % number, NOON + 10 * number
        match step:
            case "plain":
                partition.append(value, time)
            case "append":
                if which not in opened:
                    opened[which] = partition.begin()
                opened[which].append(value, time)
            case "commit" | "abort" if which in opened:
                getattr(opened.pop(which), step)()
            case "read":
                read = read_on(log, most=which)
                position = log.poll(1, 0).position
                ends = answered(log.request_ends())
                assert ends == log.ends()
                turns.append((offsets(read), values(read), position, ends))
    return turns


@settings(max_examples=25)
@given(script=st.lists(steps, max_size=14))
def test_a_reader_sees_the_same_in_both(stack: Stack, script: list[tuple[str, int]]) -> None:
    with closing(MemoryPartition()) as memory, closing(KafkaPartition(stack.kafka_bootstrap)) as real:
        assert seen(real, script) == seen(memory, script)

"""The partitions with which the suite is run."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from strandline.node.stack import Stack
from support.partition_logs import KafkaPartition, MemoryPartition, Partition


@pytest.fixture
def memory_partition() -> Iterator[Partition]:
    with closing(MemoryPartition()) as partition:
        yield partition


@pytest.fixture
def kafka_partition(stack: Stack) -> Iterator[Partition]:
    with closing(KafkaPartition(stack.kafka_bootstrap)) as partition:
        yield partition


@pytest.fixture(params=["memory", "kafka"])
def partition(request: pytest.FixtureRequest) -> Partition:
    return request.getfixturevalue(f"{request.param}_partition")

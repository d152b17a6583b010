"""The partitions that the suite is run against."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from strandline.node.stack import Stack, StackOptions
from support.partition_logs import KafkaPartition, MemoryPartition, Partition
from support.real_kafka import running_kafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A real Kafka. Tests share it: each makes a topic of its own."""
    yield from running_kafka(StackOptions(tmp_path_factory.mktemp("kafka") / "state"))


@pytest.fixture
def memory_partition() -> Iterator[Partition]:
    with closing(MemoryPartition()) as partition:
        yield partition


@pytest.fixture
def kafka_partition(kafka: Stack) -> Iterator[Partition]:
    with closing(KafkaPartition(kafka.kafka_bootstrap)) as partition:
        yield partition


@pytest.fixture(params=["memory", "kafka"])
def partition(request: pytest.FixtureRequest) -> Partition:
    return request.getfixturevalue(f"{request.param}_partition")

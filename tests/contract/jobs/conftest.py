"""The brokers for the suite: in memory, and real ones."""

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from strandline.jobs.landing.progress import PartIdentity
from strandline.node.stack import Stack
from support.part_logs import KafkaWorld, MemoryWorld, World


@pytest.fixture
def memory() -> MemoryWorld:
    return MemoryWorld()


@pytest.fixture
def kafka(stack: Stack) -> Iterator[KafkaWorld]:
    with ExitStack() as opened:
        yield KafkaWorld(stack.kafka_bootstrap, opened)


@pytest.fixture(params=["memory", "kafka"])
def world(request: pytest.FixtureRequest) -> World:
    return request.getfixturevalue(request.param)


@pytest.fixture
def part() -> PartIdentity:
    """A part of a new job."""
    return PartIdentity("contract", uuid.uuid4().hex, 7)

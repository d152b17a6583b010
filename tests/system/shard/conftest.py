"""A separate Kafka, for outages that must not affect other tests."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.guarded_kafka import GuardedKafka


@pytest.fixture(scope="module")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    with closing(GuardedKafka(tmp_path_factory.mktemp("guarded-kafka") / "state")) as kafka:
        yield kafka

"""A Kafka of its own, for what other tests must not suffer from."""

from collections.abc import Iterator

import pytest

from support.guarded_kafka import GuardedKafka, guarded_options
from support.real_kafka import running_kafka


@pytest.fixture(scope="package")
def guarded_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    for stack in running_kafka(guarded_options(tmp_path_factory.mktemp("guarded-kafka") / "state")):
        yield GuardedKafka(stack)

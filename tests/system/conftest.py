"""Real servers for the system tests, started once a process by the code that `strandline stack` uses."""

from collections.abc import Iterator

import pytest

from strandline.node.stack import Stack, StackOptions
from support.real_stack import running


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Kafka and Cassandra, healthy. Tests share them: give topics and keyspaces names of your own."""
    # The name is a test, too: a home folder may well be called like this.
    root = tmp_path_factory.mktemp("stack en été")
    yield from running(StackOptions(root / "state"))

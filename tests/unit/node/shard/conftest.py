"""Fixtures that several tests of the shard share."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.shard_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with closing(World(tmp_path)) as made:
        yield made

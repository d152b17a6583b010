"""Worlds in memory, each in a separate folder."""

from collections.abc import Callable, Iterator

import pytest

from support.rewound_worlds import worlds
from support.shard_world import World


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    with worlds() as make:
        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()

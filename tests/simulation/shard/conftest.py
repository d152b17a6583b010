import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from support.shard_world import World

# A simulation commits thousands of times and simulates no power failures, so memory serves as the disk.
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="strandline-", dir=MEMORY if MEMORY.is_dir() else None))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def make_world(folder: Path) -> Iterator[Callable[..., World]]:
    """Creates worlds with some options changed."""
    numbers = itertools.count()
    with ExitStack() as opened:

        def make(**changes: Any) -> World:
            home = folder / str(next(numbers))
            home.mkdir()
            return opened.enter_context(closing(World(home, **changes)))

        yield make


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()

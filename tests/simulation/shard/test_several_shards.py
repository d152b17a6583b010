"""A dataset with two shards, read together."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from strandline.node.shard.reader import ShardReader, read_shards
from strandline.store.rows import ShardId
from strandline.store.selecting import WantedSeries
from strandline.time_range import ALL_TIMES
from support.shard_world import World

pytestmark = pytest.mark.simulation


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[list[World]]:
    made = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        made.append(World(folder, shard=ShardId("metrics", number)))
        made[-1].start()
    yield made
    for world in made:
        world.close()


def wanted_of(world: World) -> WantedSeries:
    rows = world.running.index.columns.rows
    order = np.lexsort((rows.key_low, rows.key_high, rows.metric))
    return WantedSeries(rows.metric[order], rows.key_high[order], rows.key_low[order])


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored"])
def test_a_sample_that_was_resent_after_partitions_were_added_is_found_once(
    worlds: list[World], *, stored: bool
) -> None:
    """Scenario 22: the retry goes to another partition, perhaps with another value."""
    now = worlds[0].clock.now_ms()
    for number, world in enumerate(worlds):
        world.produce(("m", "a", now, float(number)), ("m", "a", now + 1 + number, 5.0))
        world.settle()
        if stored:
            world.pass_hours(1)
    for readers in (worlds, worlds[::-1]):
        run = read_shards([ShardReader(reader.running) for reader in readers], wanted_of(worlds[0]), ALL_TIMES)
        assert run.time.tolist() == [now, now + 1, now + 2]
        assert run.value.tolist() == [1.0, 5.0, 5.0], "the higher shard's counts"

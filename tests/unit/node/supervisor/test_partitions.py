"""Which shards a node serves."""

import pytest

from strandline.errors import ExitCode
from strandline.node.settings import Settings
from strandline.node.supervisor.partitions import ListedShardMissing, served_shards, serves_all

pytestmark = pytest.mark.unit


def settings(shards: str) -> Settings:
    return Settings(node={"shards": shards}, dataset={"name": "metrics"})


@pytest.mark.parametrize(("shards", "served"), [("all", (0, 1, 2, 3)), ("1-2", (1, 2)), ("3, 0", (0, 3))])
def test_the_listed_shards_or_all_are_served(shards: str, served: tuple[int, ...]) -> None:
    assert served_shards(settings(shards), 4) == served


def test_a_listed_shard_without_a_partition_is_an_error_that_names_it() -> None:
    with pytest.raises(ListedShardMissing, match=r'"2-5".*metrics has 4 partitions: there is no shard 4, 5') as raised:
        served_shards(settings("2-5"), 4)
    assert raised.value.exit_code is ExitCode.USAGE
    assert "0 to 3" in raised.value.remedy


def test_only_all_includes_new_partitions() -> None:
    assert serves_all(settings("ALL"))
    assert not serves_all(settings("0-3"))

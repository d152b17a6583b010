"""Fixtures of the index's tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.index.part_key_index import PartKeyIndex
from strandline.index.vm import start_vm
from support.shard_with_copy import Shard


@pytest.fixture
def index(tmp_path: Path) -> Iterator[PartKeyIndex]:
    start_vm()
    with PartKeyIndex.open(tmp_path / "index") as opened:
        yield opened


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    start_vm()
    shard = Shard(tmp_path / "copy")
    yield shard
    shard.lucene.close()

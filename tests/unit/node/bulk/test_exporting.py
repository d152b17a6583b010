"""Exports are refused while hours of their range are not ready."""

import pickle
from pathlib import Path
from typing import cast

import pytest

from strandline.clock import ManualClock
from strandline.jobs.exporting.export_kind import EXPORT, ExportKind
from strandline.node.bulk.exporting import hours_not_ready
from strandline.node.bulk.opening import kind_openers
from strandline.node.settings.load import load_settings
from strandline.node.settings.writing import write_settings
from strandline.recovery.cutting import Cutting
from strandline.recovery.periods import HOUR, parse_period
from strandline.recovery.readiness import StoredDataset
from strandline.store.protocol import Store
from support.memory_store import MemoryServer, MemoryStore
from support.stored_samples import DATASET, DAY, GROUPS, START, StoredSamples

pytestmark = pytest.mark.unit


def dataset(*, hours: int, partitions: int = 2, present: int = START + 2 * DAY, known_since: int = 0) -> StoredDataset:
    """The number of hours that are stored of each shard, from the first one on."""
    clock = ManualClock(present)
    stored = StoredSamples(cast("Store", MemoryStore(MemoryServer(clock))), clock, 2)
    for bucket in range(START // HOUR, START // HOUR + hours):
        for shard in (0, 1):
            stored.write(shard, bucket, [])
    manifests = stored.manifests()
    rows = [manifests.get(shard) for shard in range(partitions)]
    return StoredDataset(DATASET, Cutting(HOUR, 0), GROUPS, rows, known_since, present)


def not_ready(stored: StoredDataset, start: int, end: int) -> list[int]:
    return [(parse_period(readiness.period).start - START) // HOUR for readiness in hours_not_ready(stored, start, end)]


def test_hours_that_are_stored_are_ready_and_later_ones_are_not() -> None:
    stored = dataset(hours=30)
    assert not_ready(stored, START, START + DAY) == []
    assert not_ready(stored, START + 28 * HOUR, START + 32 * HOUR) == [30, 31]
    # An hour that is only partly in the range must be ready completely.
    assert not_ready(stored, START + 29 * HOUR, START + 30 * HOUR + 1) == [30]


def test_a_partition_that_no_shard_has_read_keeps_all_hours_back() -> None:
    assert not_ready(dataset(hours=2, partitions=3), START, START + 2 * HOUR) == [0, 1]


def test_hours_before_the_first_record_are_no_obstacle_unless_rows_may_have_expired() -> None:
    before = (START - 3 * HOUR, START)
    assert not_ready(dataset(hours=2), *before) == []
    assert not_ready(dataset(hours=2, known_since=START - 2 * HOUR), *before) == [-3]


def test_an_hour_that_has_not_ended_is_not_ready() -> None:
    assert not_ready(dataset(hours=2, present=START + HOUR + 1), START, START + 2 * HOUR) == [1]


def test_exports_are_opened_in_other_processes_by_a_pickled_opener(tmp_path: Path) -> None:
    path = write_settings(
        tmp_path / "s.toml",
        {
            "dataset": {"name": "metrics", "kafka_retention": "1h"},
            "store": {"kind": "sqlite"},
            "shard": {"data_dir": str(tmp_path)},
        },
    )
    opener = kind_openers(load_settings(path, {}))[EXPORT]
    unpickled = pickle.loads(pickle.dumps(opener))  # noqa: S301 - our own
    assert unpickled == opener
    assert isinstance(unpickled(ManualClock()), ExportKind)

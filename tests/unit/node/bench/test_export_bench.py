"""A small `strandline bench export` with an in-memory store and without a peer."""

from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from strandline.clock import SystemClock
from strandline.node.bench import export_bench
from strandline.node.bench.export_bench import ExportBench, ExportLoad
from strandline.node.output import Table
from strandline.node.settings.load import load_settings
from strandline.node.settings.writing import write_settings
from strandline.node.steps import LineSteps
from strandline.store.protocol import Store
from support.memory_store import MemoryServer, MemoryStore

pytestmark = pytest.mark.unit


def test_every_stored_sample_is_exported_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_bench, "peer_program", lambda: None)
    settings = load_settings(
        write_settings(tmp_path / "s.toml", {"dataset": {"name": "bench", "kafka_retention": "1h"}}), {}
    )
    store = cast("Store", MemoryStore(MemoryServer(SystemClock())))
    load = ExportLoad(2_000, series=8, labels=3, shards=2)
    report = ExportBench(load, tmp_path, LineSteps("", StringIO(), SystemClock())).run_on(store, settings)
    (ours,) = report.figures
    assert ours.samples == load.samples_an_hour * 24 * 8 == 1_920
    assert "not installed" in report.remark
    assert [block.columns[0] for block in report.blocks() if isinstance(block, Table)] == ["exporter"]

"""`strandline bench import` with little data."""

from pathlib import Path
from uuid import uuid4

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.import_bench import BenchParts, ImportBench
from strandline.node.bench.import_files import FILE_FORMATS, ImportLoad
from strandline.node.stack import Stack
from strandline.node.steps import LineSteps

pytestmark = pytest.mark.system


def test_every_format_is_measured(stack: Stack, tmp_path: Path) -> None:
    load = ImportLoad(20_000, 50, partitions=2)
    with (tmp_path / "steps").open("w") as stream, LineSteps("Measuring", stream, SystemClock()) as steps:
        report = ImportBench(load, tmp_path, steps, BenchParts(shards=False, peer=False)).run_on(
            stack, f"bench-{uuid4().hex[:8]}"
        )
    assert [row.format for row in report.figures] == [form.value for form in FILE_FORMATS]
    for row in report.figures:
        assert row.samples == load.samples
        assert row.cpu_seconds > 0
        assert row.seconds > 0
        assert 0 < row.kafka_bytes < row.file_bytes
    assert len(list(report.blocks())) == 4

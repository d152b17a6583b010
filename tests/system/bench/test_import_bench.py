"""`strandline bench import`, with little to import."""

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
    assert [one.format for one in report.figures] == [one.value for one in FILE_FORMATS]
    for one in report.figures:
        assert one.samples == load.samples
        assert one.cpu_seconds > 0
        assert one.seconds > 0
        assert 0 < one.kafka_bytes < one.file_bytes
    assert len(list(report.blocks())) == 4

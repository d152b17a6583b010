"""`strandline bench recovery`, as small as it can be, on the shared servers."""

import io
from pathlib import Path
from uuid import uuid4

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.recovery_bench import RecoveryBench, RecoveryOptions
from strandline.node.bench.recovery_report import RecoveryReport
from strandline.node.stack import Stack
from strandline.node.steps import LineSteps

pytestmark = pytest.mark.system


def measure(options: RecoveryOptions, stack: Stack, folder: Path) -> RecoveryReport:
    bench = RecoveryBench(options, folder, LineSteps("", io.StringIO(), SystemClock()))
    return bench.run_on(stack, prefix=f"bench-{uuid4().hex[:8]}")


def test_starts_are_measured_with_and_without_the_local_copy(stack: Stack, tmp_path: Path) -> None:
    report = measure(RecoveryOptions(1_000, 40, lag_part=False, flush_interval_s=2), stack, tmp_path)
    assert [(start.series, start.local_copy) for start in report.index_starts] == [(1_000, "warm"), (1_000, "cold")]
    for start in report.index_starts:
        # Rounded to milliseconds: a thousand keys may take less.
        assert 0 <= start.start.recovering_index < start.start.seconds
        assert start.start.process_start > 0
        assert start.start.peak_resident_bytes > 100 << 20, "it includes a JVM"
    assert not report.lag_starts


def test_missed_records_are_read_and_stored_before_the_next_start(stack: Stack, tmp_path: Path) -> None:
    # The start of Spark alone takes half a minute; separate tests cover its replays.
    options = RecoveryOptions(1_000, 40, index_part=False, readers=("direct",), flush_interval_s=2)
    report = measure(options, stack, tmp_path)
    (direct,) = report.lag_starts
    assert (direct.reader, direct.records, direct.samples) == ("direct", 40, 40_000)
    assert 0 < direct.start.catching_up < direct.start.seconds
    assert direct.start.seconds <= direct.stored_seconds
    assert direct.workers_peak_bytes == 0
    assert not report.index_starts
    assert not report.warm_replays

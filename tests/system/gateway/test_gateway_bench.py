"""`strandline bench gateway`, as small as it can be."""

import io
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.gateway_bench import GatewayBench, GatewayLoad
from strandline.node.output import Table
from strandline.node.stack import Stack
from strandline.node.steps import LineSteps
from support.gateway_topics import GatewayTopic
from support.gateways import decoded

pytestmark = pytest.mark.system


@pytest.mark.parametrize("series", [30, 4_000])
def test_everything_sent_is_written_and_the_duration_is_reported_by_stage(
    series: int, stack: Stack, tmp_path: Path
) -> None:
    topic = GatewayTopic(stack.kafka_bootstrap, make=False)
    load = GatewayLoad(requests=20, series=series, connections=2, partitions=3)
    bench = GatewayBench(load, tmp_path, LineSteps("", io.StringIO(), SystemClock()))
    report = bench.run_on(stack, topic=topic.name)
    assert report.samples == 20 * series
    assert 0 < sum(report.stages.values()) < report.cpu_seconds
    # The warm-up is written, too.
    assert len(decoded(topic.read())) == 120 * series
    *_, table = report.blocks()
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows][-1] == "all"

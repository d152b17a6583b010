import io
from itertools import count

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.fleet import labels_of, records
from strandline.node.bench.index_bench import IndexBench, IndexBenchReport
from strandline.node.bench.table_growth import grow_table
from strandline.node.cli.bench import picture
from strandline.node.output import Table
from strandline.node.steps import LineSteps
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import decompress
from support.remote_write import WriteRequest

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> IndexBenchReport:
    return IndexBench(3_000, tmp_path_factory.mktemp("bench"), LineSteps("", io.StringIO(), SystemClock())).run()


def test_the_fleets_records_have_its_labels() -> None:
    bodies = list(records(4_500, 1_700_000_000_000))
    requests = [WriteRequest.FromString(decompress(body, limit=1 << 25)) for body in bodies]
    assert [len(request.timeseries) for request in requests] == [2000, 2000, 500]
    first = requests[1].timeseries[7]
    assert [(label.name, label.value) for label in first.labels] == labels_of(2_007)
    columns = decode_batch(bodies, Limits())
    assert len(set(zip(columns.key_low.tolist(), columns.key_high.tolist(), strict=True))) == 4_500
    assert set(columns.time.tolist()) == {1_700_000_000_000}


def test_every_lookup_finds_the_fleets_series(report: IndexBenchReport) -> None:
    results = {figure.what: figure.found for figure in report.lookups}
    assert results["equality, 1 key"] == 1
    assert results["equality, 1 k keys"] == 1_000
    assert results["equality, 10 k keys"] == 3_000
    assert results["equality, all keys"] == 3_000
    assert results["list regex, 10 values"] == 3_000
    assert results["suffix regex over every pod"] == 1
    assert results["negation"] == 0
    assert results["label values under a matcher"] == 3_000
    assert results["label names"] == 10
    assert results["cardinality of every label"] == 3_000 + 500 + 4 + 1 + 3 + 1 + 5 + 1 + 3 + 8
    assert results["cardinality under a matcher"] == results["cardinality of every label"], "all are in one namespace"
    assert results["top 10 metric names by series"] == 10
    assert results["top 10 of every pod by series"] == 10


def test_every_figure_is_there_and_positive(report: IndexBenchReport) -> None:
    assert len(report.stages) == 8
    assert all(stage.seconds > 0 for stage in report.stages)
    assert all(0 < figure.p50_ms <= figure.p99_ms for figure in report.lookups)
    assert report.memory.table >= 24
    assert report.memory.columns >= 52
    assert report.bucket_bytes_a_key > 16, "a key's hash alone has this size"


def test_the_report_has_the_longest_pause_of_the_key_table_and_its_bound(report: IndexBenchReport) -> None:
    growth = report.table_growth
    assert (growth.growths, growth.keys) == (1, 3_000)
    assert growth.pause_ms_a_million_keys == pytest.approx(growth.pause_ms / 0.003)
    assert growth.bound_ms_a_million_keys == 50
    tables = [block for block in report.blocks() if isinstance(block, Table) and "pause" in block.columns[0]]
    (row,) = tables[0].rows
    assert row[1:3] == ("3,000", f"{growth.pause_ms:.1f}")
    assert row[-1] == "50"


def test_the_longest_pause_is_that_of_a_call_which_grew_the_table() -> None:
    # Each call takes longer than the previous one: 1 s, 5 s, 9 s and so on.
    seconds = (float(tick**2) for tick in count())
    # The table is full at 20, 40, 60, 100 and 200 thousand keys, and doubles its slots each time.
    growth = grow_table(250_000, clock=lambda: next(seconds))
    assert growth.growths == 5
    assert (growth.keys, growth.pause_ms) == (200_000, 37_000), "the tenth call, although three longer ones followed"
    assert growth.pause_ms_a_million_keys == 185_000


def test_the_picture_has_a_bar_for_each_figure(report: IndexBenchReport) -> None:
    drawn = picture(report)
    for figure in (*report.lookups, *report.stages):
        assert f">{figure.what}<" in drawn
    assert drawn.count('class="bar"') == len(report.lookups) + len(report.stages)

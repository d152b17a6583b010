import io

import pytest

from strandline.clock import SystemClock
from strandline.node.bench.fleet import labels_of, records
from strandline.node.bench.index_bench import IndexBench, IndexBenchReport
from strandline.node.cli.bench import picture
from strandline.node.steps import LineSteps
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.snappy import decompress
from support.remote_write import WriteRequest

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> IndexBenchReport:
    return IndexBench(3_000, tmp_path_factory.mktemp("bench"), LineSteps("", io.StringIO(), SystemClock())).run()


def test_the_fleets_records_say_what_its_labels_are() -> None:
    bodies = list(records(4_500, 1_700_000_000_000))
    requests = [WriteRequest.FromString(decompress(body, limit=1 << 25)) for body in bodies]
    assert [len(request.timeseries) for request in requests] == [2000, 2000, 500]
    first = requests[1].timeseries[7]
    assert [(label.name, label.value) for label in first.labels] == labels_of(2_007)
    columns = decode_batch(bodies, Limits())
    assert len(set(zip(columns.key_low.tolist(), columns.key_high.tolist(), strict=True))) == 4_500
    assert set(columns.time.tolist()) == {1_700_000_000_000}


def test_every_look_up_finds_what_the_fleet_has(report: IndexBenchReport) -> None:
    found = {one.what: one.found for one in report.lookups}
    assert found["equality, 1 key"] == 1
    assert found["equality, 1 k keys"] == 1_000
    assert found["equality, 10 k keys"] == 3_000
    assert found["equality, all keys"] == 3_000
    assert found["list regex, 10 values"] == 3_000
    assert found["suffix regex over every pod"] == 1
    assert found["negation"] == 0
    assert found["label values under a matcher"] == 3_000
    assert found["label names"] == 10


def test_every_figure_is_there_and_positive(report: IndexBenchReport) -> None:
    assert len(report.stages) == 8
    assert all(stage.seconds > 0 for stage in report.stages)
    assert all(0 < one.p50_ms <= one.p99_ms for one in report.lookups)
    assert report.memory.table >= 24
    assert report.memory.columns >= 52
    assert report.bucket_bytes_a_key > 16, "a key's hash alone takes as much"


def test_the_picture_has_a_bar_for_each_figure(report: IndexBenchReport) -> None:
    drawn = picture(report)
    for one in (*report.lookups, *report.stages):
        assert f">{one.what}<" in drawn
    assert drawn.count('class="bar"') == len(report.lookups) + len(report.stages)

"""Estimates of imports from pieces of their files."""

import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.clock import ManualClock, SystemClock
from strandline.jobs.importing import estimating
from strandline.jobs.importing.estimating import ImportEstimate, estimate_import
from strandline.jobs.importing.planning import ImportOptions, plan_import
from strandline.jobs.importing.spec import Format
from strandline.recovery.periods import HOUR
from strandline.time_range import TimeRange
from support.prometheus_blocks import Chunk, write_block

pytestmark = pytest.mark.unit

START = 500_000 * HOUR
ROWS = 60_000
# Ten samples an hour; the last hundred hours are too far ahead.
TIMES = TimeRange(START, START + 5_900 * HOUR - 1)
MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
OPTIONS = ImportOptions(Format.CSV, MAPPING, TIMES)


def rows(number: int = ROWS, *, bad_every: int = 20) -> str:
    lines = (f"{START + row * HOUR // 10},h{row % 7},{'?' if row % bad_every == 0 else row}\n" for row in range(number))
    return "time,host,value\n" + "".join(lines)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces, so that a file of megabytes is not read completely."""
    monkeypatch.setattr(estimating, "_PIECE_BYTES", 4096)


def estimated(*paths: Path, options: ImportOptions = OPTIONS) -> ImportEstimate:
    return estimate_import(plan_import([str(path) for path in paths], options), ManualClock())


@pytest.mark.parametrize("part_bytes", [10**9, 100_000, 10_000])
def test_records_times_and_bad_records_of_a_text_are_estimated_from_a_small_share_of_it(
    tmp_path: Path, part_bytes: int
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(rows())
    found = estimated(path, options=replace(OPTIONS, part_bytes=part_bytes))
    assert found.sampled < ROWS / 10
    assert found.records == pytest.approx(ROWS, rel=0.03)
    assert found.bad_records == pytest.approx(0.05 * ROWS + 0.95 * 1_000, rel=0.8)
    assert found.samples == pytest.approx(ROWS - found.bad_records, rel=0.05)
    # The first and the last bytes are among the pieces.
    assert found.first == START
    assert found.behind is not None
    assert START + 5_500 * HOUR < found.behind <= START + 5_900 * HOUR
    assert sum("too far ahead" in reason for reason in found.bad) == 1
    assert len(found.bad) == 2


def test_a_small_file_is_read_as_a_whole_and_each_record_once(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(rows(40))
    found = estimated(path)
    assert (found.pieces, found.sampled, found.records, found.samples, found.bad_records) == (1, 40, 40, 38, 2)
    assert (found.first, found.behind, found.hours) == (START, START + 4 * HOUR, 4)


def test_totals_of_a_compressed_file_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(rows().encode()))
    found = estimated(path)
    assert (found.records, found.samples, found.bad_records, found.seconds) == (None, None, None, None)
    assert 0 < found.sampled < ROWS / 10
    assert found.first == START


def test_records_with_newlines_in_quotes_are_read_from_the_start_of_parts(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(rows().replace("h1,", '"h\n1",'))
    options = replace(OPTIONS, mapping={**MAPPING, "multiline": True}, part_bytes=100_000)
    found = estimated(path, options=options)
    assert found.records == pytest.approx(ROWS, rel=0.03)
    assert sum("no number" in reason or "number" in reason for reason in found.bad) >= 1


def test_rows_of_parquet_are_known_and_samples_are_estimated(tmp_path: Path) -> None:
    times = pa.array([START + row * HOUR // 10 for row in range(1000)], pa.timestamp("ms", tz="UTC"))
    labels = pa.array([[("host", "a")]] * 1000, pa.map_(pa.string(), pa.string()))
    table = pa.table(
        {"metric": ["cpu"] * 1000, "labels": labels, "time": times, "value": pa.array(range(1000), pa.float64())}
    )
    for name in ("a", "b"):
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=100)
    found = estimated(tmp_path / "*.parquet", options=replace(OPTIONS, format=Format.PARQUET, mapping={}))
    assert (found.records, found.samples, found.bad_records, found.hours) == (2000, 2000, 0, 100)


def test_samples_and_times_of_a_block_are_those_of_its_own_count(tmp_path: Path) -> None:
    samples = tuple((START + minute * 60_000, 0) for minute in range(120))
    write_block(tmp_path, [((("__name__", "up"), ("job", str(job))), [Chunk(samples)]) for job in range(3)])
    found = estimated(tmp_path, options=replace(OPTIONS, format=Format.PROMETHEUS_BLOCKS, mapping={}))
    assert (found.samples, found.bad_records, found.first, found.hours) == (360, 0, START, 2)


def test_the_time_is_that_of_reading_and_packing(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text(rows())
    found = estimate_import(plan_import([str(path)], OPTIONS), SystemClock())
    assert found.seconds is not None
    assert 0 < found.seconds < 60

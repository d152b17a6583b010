"""The same samples in every format land as the same samples, also with a crash in the middle."""

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.jobs.importing import block_parts, parquet_parts
from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.spec import Format
from strandline.jobs.report import JobReport
from strandline.store.bulk_jobs import BulkJobState
from support.bulk_worlds import Fault, FaultKind
from support.job_worlds import JobWorld
from support.prometheus_blocks import Chunk, write_block

pytestmark = pytest.mark.simulation

FIRST = 1_800_000_000_000
Sample = tuple[str, int, float]
SAMPLES: list[Sample] = [(f"host-{row % 7}", FIRST + row * 1_000, row / 8 - 3) for row in range(120)]
CSV = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
PARQUET = {"metric": "cpu", "value": "value", "time": "time", "labels": ["host"]}


def by_series() -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for sample in SAMPLES:
        found.setdefault(sample[0], []).append(sample)
    return found


def write_csv(folder: Path) -> Path:
    lines = ["host,time,value", *(f"{host},{time},{value}" for host, time, value in SAMPLES)]
    return _written(folder / "data.csv", lines)


def write_openmetrics(folder: Path) -> Path:
    lines = [f'cpu{{host="{host}"}} {value} {time / 1000:.3f}' for host, time, value in SAMPLES]
    return _written(folder / "data.om", ["# TYPE cpu gauge", *lines, "# EOF"])


def write_jsonl(folder: Path) -> Path:
    lines = [
        json.dumps(
            {
                "metric": {"__name__": "cpu", "host": host},
                "values": [value for _, _, value in samples],
                "timestamps": [time for _, time, _ in samples],
            }
        )
        for host, samples in by_series().items()
    ]
    return _written(folder / "data.jsonl", lines)


def write_parquet(folder: Path) -> Path:
    hosts, times, values = zip(*SAMPLES, strict=True)
    table = pa.table({"host": hosts, "time": pa.array(times, pa.timestamp("ms", "UTC")), "value": values})
    pq.write_table(table, folder / "data.parquet", row_group_size=25)
    return folder / "data.parquet"


def write_blocks(folder: Path) -> Path:
    series = [
        (
            (("__name__", "cpu"), ("host", host)),
            [Chunk([(time, struct.unpack("<Q", struct.pack("<d", value))[0]) for _, time, value in samples])],
        )
        for host, samples in sorted(by_series().items())
    ]
    write_block(folder / "tsdb", series)
    return folder / "tsdb"


def _written(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


FORMATS: list[tuple[Format, dict[str, object], Callable[[Path], Path]]] = [
    (Format.CSV, CSV, write_csv),
    (Format.OPENMETRICS, {}, write_openmetrics),
    (Format.JSONL, {}, write_jsonl),
    (Format.PARQUET, PARQUET, write_parquet),
    (Format.PROMETHEUS_BLOCKS, {}, write_blocks),
]


@pytest.fixture(params=FORMATS, ids=[form[0].value for form in FORMATS])
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobWorld:
    """The plan has several parts with several chunks each, some of which are split because they become too large."""
    format_, mapping, write = request.param
    monkeypatch.setattr(parquet_parts, "ROWS_PER_CHUNK", 10)
    monkeypatch.setattr(block_parts, "SAMPLES_PER_CHUNK", 20)
    world = JobWorld(tmp_path)
    options = ImportOptions(format_, mapping, part_bytes=600, chunk_bytes=200, max_record=2_000, packed_bytes=400)
    plan = world.planned_of(write(tmp_path), options)
    if format_ is not Format.PROMETHEUS_BLOCKS:
        assert len(plan.parts) > 1
    return world


def check_done(world: JobWorld) -> None:
    samples = world.samples()
    assert set(samples.values()) == {1}
    assert sorted((time, value) for _, time, value in samples) == [(time, value) for _, time, value in SAMPLES]
    job = world.board.job("job")
    assert (job.state, job.reason) == (BulkJobState.DONE, "")
    report = JobReport.from_json(job.report)
    assert (report.counts.samples, report.counts.bad) == (len(SAMPLES), 0)


def test_every_sample_lands_once(world: JobWorld) -> None:
    assert world.work()
    check_done(world)
    assert max(chunk for (_, _, chunk), _ in world.records()) > 0


def test_another_worker_continues_after_a_crash_between_chunks(world: JobWorld) -> None:
    assert not world.work(Fault(FaultKind.CRASH_AFTER, 22))
    assert 0 < len(world.samples()) < len(SAMPLES)
    assert world.work()
    check_done(world)


def test_a_source_that_changes_is_refused_and_named(world: JobWorld) -> None:
    files = sorted(path for path in world.folder.rglob("*") if path.is_file())
    changed = files[-1] if len(files) == 1 else next(path for path in files if path.name == "index")
    changed.write_bytes(changed.read_bytes()[:-1] + b"?")
    world.work()
    job = world.board.job("job")
    assert job.state is BulkJobState.FAILED
    assert not world.samples()

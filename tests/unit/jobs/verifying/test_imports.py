"""Verification of an import, with a reader that has everything, or in which something is missing, different or
unreadable.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from strandline.clock import ManualClock
from strandline.jobs.importing.planning import ImportOptions
from strandline.jobs.importing.spec import Format
from strandline.jobs.sources.source_errors import SourceChanged
from strandline.jobs.verifying.comparing import KeyedSamples
from strandline.jobs.verifying.imports import (
    Difference,
    ImportVerified,
    ImportVerifier,
    NotReadable,
    WantedSeries,
)
from strandline.wire.decode import Limits, decode_batch
from support.job_worlds import JobWorld

pytestmark = pytest.mark.unit

NOW = 1_800_000_000_000
MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
OPTIONS = ImportOptions(Format.CSV, MAPPING, part_bytes=600, chunk_bytes=200)
ROWS, HOSTS = 120, 30


class Reader:
    """Reads what has landed in a topic, as a node would."""

    def __init__(self, world: JobWorld) -> None:
        values = [value for _, value in world.records()]
        columns = decode_batch(values, Limits())
        counts = np.diff(columns.first_sample)
        low, high = np.repeat(columns.key_low, counts), np.repeat(columns.key_high, counts)
        self.samples = KeyedSamples(low, high, columns.time, columns.value.view(np.uint64).copy())
        self.requests: list[Sequence[WantedSeries]] = []
        self.late = 0
        self.fault: NotReadable | None = None

    def read(self, series: Sequence[WantedSeries]) -> KeyedSamples:
        self.requests.append(series)
        if self.fault is not None:
            raise self.fault
        if self.late:
            self.late -= 1
            return self.samples.take(np.arange(0))
        return self.samples


@pytest.fixture
def world(tmp_path: Path) -> JobWorld:
    lines = ["time,host,value", *(f"{NOW + row},host-{row % HOSTS},{row}" for row in range(ROWS))]
    made = JobWorld(tmp_path)
    made.planned("\n".join([*lines, "bad,host-1,x"]).encode(), OPTIONS)
    assert made.work()
    return made


def verified(world: JobWorld, reader: Reader, *, all_of_it: bool = True, oldest: int = 0) -> ImportVerified:
    job = world.board.job("job")
    verifier = ImportVerifier(reader, ManualClock(NOW), oldest)
    return sum(verifier.verify(job, world.board.parts(job), all_of_it=all_of_it), ImportVerified())


def test_every_sample_of_an_import_is_compared(world: JobWorld) -> None:
    reader = Reader(world)
    found = verified(world, reader)
    parts = len(world.board.parts(world.board.job("job")))
    assert found == ImportVerified(parts=parts, series=found.series, samples=ROWS)
    assert parts >= 4
    labels = {wanted.labels for series in reader.requests for wanted in series}
    assert len(labels) == HOSTS


def test_without_all_some_series_of_some_parts_are_compared(world: JobWorld) -> None:
    found = verified(world, Reader(world), all_of_it=False)
    assert 0 < found.samples < ROWS
    assert (found.missing, found.different) == (0, 0)


def test_a_sample_that_is_missing_or_has_another_value_is_named(world: JobWorld) -> None:
    reader = Reader(world)
    kept = reader.samples.take(reader.samples.time != NOW + 7)
    changed = kept.bits.copy()
    changed[kept.time == NOW + 50] = np.float64(-1.0).view(np.uint64)
    reader.samples = replace(kept, bits=changed)
    found = verified(world, reader)
    assert (found.samples, found.missing, found.different) == (ROWS, 1, 1)
    assert set(found.examples) == {
        Difference('{__name__="cpu", host="host-7"}', NOW + 7, 7.0, None),
        Difference('{__name__="cpu", host="host-20"}', NOW + 50, 50.0, -1.0),
    }


def test_samples_that_a_shard_has_not_read_yet_are_awaited(world: JobWorld) -> None:
    reader = Reader(world)
    reader.late = 3
    assert verified(world, reader).missing == 0


def test_samples_that_can_t_be_read_are_not_a_fault_and_not_compared(world: JobWorld) -> None:
    reader = Reader(world)
    reader.fault = NotReadable("shard 0 is replaying")
    found = verified(world, reader)
    assert (found.samples, found.unreadable, found.missing, found.reason) == (0, ROWS, 0, "shard 0 is replaying")


def test_samples_that_have_expired_are_not_looked_for(world: JobWorld) -> None:
    found = verified(world, Reader(world), oldest=NOW + 100)
    assert (found.samples, found.expired) == (ROWS - 100, 100)


def test_an_import_is_not_verified_with_a_changed_source(world: JobWorld) -> None:
    (world.folder / "job.txt").write_text("time,host,value\n")
    with pytest.raises(SourceChanged):
        verified(world, Reader(world))

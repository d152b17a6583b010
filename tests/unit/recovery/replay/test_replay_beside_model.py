"""Compares the output for any records, divided into any tasks, batches and units, with that of a simple loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.clock import ManualClock
from strandline.index.documents import encode_part_key
from strandline.recovery.replay.job_result import attempt_of
from strandline.recovery.replay.memory_runner import MemoryRunner, TaskSizes
from strandline.recovery.replay.replay_input import ReplaySettings, SeriesBound
from strandline.recovery.replay.result_codec import read_faults, read_result, read_summary
from strandline.store.jobs import Job
from strandline.store.rows import SegmentsOf
from support import replays
from support.replays import HOUR, DictStore, LogRecord, key_of, labels, leased_job, model_of_job, source_of

pytestmark = pytest.mark.unit

GROUPS = 3
SERIES = [labels(metric, name) for metric in ("up", "load", "free") for name in ("a", "b", "c")]
START = 1000 * HOUR

VALUES = st.sampled_from([0.0, 1.0, 1.5, -0.0, float("nan"), 1e300])
SAMPLES = st.lists(st.tuples(st.integers(START, START + 5), VALUES), max_size=3).map(tuple)
ONE_SERIES = st.tuples(st.sampled_from(SERIES), SAMPLES)
CONTENT = st.one_of(st.lists(ONE_SERIES, max_size=4).map(tuple), st.lists(ONE_SERIES, max_size=4).map(tuple), st.none())
BOUNDS = st.lists(
    st.sampled_from([SeriesBound(key_of(labels)[0] % GROUPS, *key_of(labels)) for labels in SERIES]),
    unique=True,
    max_size=4,
).map(sorted)


@dataclass(frozen=True)
class Case:
    """A partition, jobs over it, and the bounds of each job's units."""

    records: Sequence[LogRecord]
    jobs: Sequence[Job]
    bounds: Sequence[Sequence[SeriesBound]]
    settings: ReplaySettings


@st.composite
def cases(draw: st.DrawFn) -> Case:
    contents = draw(st.lists(CONTENT, max_size=12))
    # Transactions leave holes between records.
    steps = draw(st.lists(st.integers(1, 3), min_size=len(contents), max_size=len(contents)))
    offsets = np.cumsum([5, *steps])[1:].tolist()
    times = draw(st.lists(st.sampled_from([START, START + 1, START + 2, -1]), min_size=len(contents), max_size=12))
    checked = draw(st.lists(st.booleans(), min_size=len(contents), max_size=12))
    records = [
        LogRecord(offset, time, content, times_checked)
        for offset, content, time, times_checked in zip(offsets, contents, times, checked, strict=False)
    ]
    cuts = sorted(draw(st.lists(st.integers(5, 45), min_size=2, max_size=4)))
    jobs = [
        leased_job(
            start,
            end,
            bucket=1000 + number,
            groups=draw(st.frozensets(st.integers(0, GROUPS - 1))),
            wants_keys=draw(st.booleans()),
        )
        for number, (start, end) in enumerate(pairwise(cuts))
    ]
    bounds = [draw(BOUNDS) for _ in jobs]
    limits = draw(st.sampled_from([(None, None), (1, 2)]))
    return Case(records, jobs, bounds, replays.settings(groups=GROUPS, behind=limits[0], ahead=limits[1]))


SPLITS = st.builds(
    TaskSizes,
    records_per_task=st.integers(1, 13),
    records_per_batch=st.integers(1, 13),
    max_samples=st.integers(1, 9),
)


def run(case: Case, split: TaskSizes) -> DictStore:
    store = DictStore()
    bounds = dict(zip(case.jobs, case.bounds, strict=True))
    source = source_of({0: case.records})
    runner = MemoryRunner(store, source, case.settings, ManualClock(), sizes=split, bounds=bounds.__getitem__)
    runner.run(case.jobs, lambda _: None)
    return store


@given(cases(), SPLITS)
@settings(max_examples=150, deadline=None)
def test_a_replay_stores_the_same_as_a_simple_loop_over_its_records(case: Case, split: TaskSizes) -> None:
    store = run(case, split)
    for job in case.jobs:
        model = model_of_job(job, case.records, case.settings)
        for group in job.groups:
            where = SegmentsOf(job.shard, job.bucket, group, attempt_of(job))
            assert replays.stored_samples(store, where) == model.samples[group]
        result = read_result(store, job)
        assert result is not None
        assert [group.group for group in result.groups] == sorted(job.groups)
        assert [group.samples for group in result.groups] == [
            sum(map(len, model.samples[group.group].values())) for group in result.groups
        ]
        assert [group.series for group in result.groups] == [len(model.samples[group.group]) for group in result.groups]
        counts = result.counts
        assert (counts.records, counts.samples, counts.faults) == (model.records, model.all_samples, len(model.faults))
        assert (counts.too_old, counts.too_far_ahead) == (model.too_old, model.too_far_ahead)
        found = [(fault.offset, fault.time, fault.value) for fault in read_faults(store, job)]
        assert found == model.faults


@given(cases(), SPLITS)
@settings(max_examples=150, deadline=None)
def test_summaries_equal_those_of_a_simple_loop(case: Case, split: TaskSizes) -> None:
    store = run(case, split)
    part_keys = {key_of(labels): encode_part_key(dict(labels)) for labels in SERIES}
    for job in case.jobs:
        model = model_of_job(job, case.records, case.settings) if job.wants_keys else None
        summary, keys = read_summary(store, job)
        rows = list(zip(*(column.tolist() for column in summary.columns()), strict=True))
        assert {row[:3]: row[3:] for row in rows} == {
            key: (summary.least, summary.greatest, summary.offset, summary.position)
            for key, summary in (model.keys.items() if model else ())
        }
        backwards = np.arange(len(rows))[::-1]
        assert replays.texts(keys(backwards)) == [part_keys[row[:3]] for row in reversed(rows)]


@given(cases(), SPLITS, SPLITS)
@settings(max_examples=150, deadline=None)
def test_the_same_units_have_the_same_bytes_however_their_records_were_divided(
    case: Case, one: TaskSizes, other: TaskSizes
) -> None:
    left, right = run(case, one), run(case, other)
    assert left.written_segments == right.written_segments
    assert left.written_rows == right.written_rows

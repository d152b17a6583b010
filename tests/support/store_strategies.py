"""Arbitrary rows for a store: everything that the domain allows, including its bounds."""

from collections.abc import Sequence

from hypothesis import strategies as st

from strandline.store.jobs import Job, JobState
from strandline.store.rows import CutRow, GroupRow, IndexBucketRows, LateSamples, RecordIdentity
from support.store_contract import fresh_shard

_I64 = st.integers(-(2**63), 2**63 - 1)
_COUNT = st.integers(0, 2**63 - 1)
_U31 = st.integers(0, 2**31 - 1)
# All characters that UTF-8 can encode.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
checksums = st.binary(min_size=16, max_size=16) | st.just(b"")
buckets = _U31


def cut_rows(expires: Sequence[int]) -> st.SearchStrategy[CutRow]:
    """Any cut row that expires at one of these times."""
    return st.builds(
        CutRow,
        buckets,
        _COUNT,
        _COUNT,
        st.sampled_from(expires),
        lost_to=st.none() | _COUNT,
        reset=st.booleans(),
        last=st.none() | st.builds(RecordIdentity, _COUNT, _I64, st.none() | _U31, _COUNT),
        closed_early=st.booleans(),
    )


def _by_hour(counts: tuple[dict[int, int], dict[int, int]]) -> tuple[LateSamples, ...]:
    """Counts over many hours, followed by those of single hours."""
    ranges, hours = counts
    return (
        *(LateSamples(hour, ranges[hour], hours=2**20) for hour in sorted(ranges)),
        *(LateSamples(hour, hours[hour]) for hour in sorted(hours)),
    )


def group_rows(expires: Sequence[int]) -> st.SearchStrategy[GroupRow]:
    """Any group row that expires at one of these times."""
    return st.builds(
        GroupRow,
        bucket=buckets,
        group=st.integers(0, 1023),
        attempt=names,
        segments=_U31,
        series=st.integers(0, 2**32),
        samples=_COUNT,
        least_time=st.none() | _I64,
        greatest_time=st.none() | _I64,
        checksum=checksums,
        codec_version=st.integers(0, 1_000),
        data_expires=st.integers(0, 2**50),
        expires=st.sampled_from(expires),
        written_by=texts,
        written_at=_COUNT,
        late=st.tuples(st.dictionaries(_I64, _COUNT, max_size=3), st.dictionaries(_U31, _COUNT, max_size=6)).map(
            _by_hour
        ),
        superseded=st.booleans(),
        index=st.none() | st.builds(IndexBucketRows, _U31, checksums, names),
    )


def any_jobs(life: int) -> st.SearchStrategy[Job]:
    """Any job of a shard that no other test uses."""
    return st.builds(
        Job,
        shard=st.builds(fresh_shard),
        bucket=buckets,
        plan=names,
        start=_COUNT,
        end=_COUNT,
        groups=st.frozensets(st.integers(0, 1023), max_size=20),
        wants_keys=st.booleans(),
        life=st.just(life),
        state=st.sampled_from(JobState),
        epoch=_U31,
        worker=texts,
        leased_until=_COUNT,
        failures=_U31,
        reason=texts,
        renewals=_COUNT,
    )

"""Every valid row is read as it was written."""

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.store.jobs import Job
from strandline.store.protocol import Store
from strandline.store.rows import CutRow, GroupRow, ManifestWrite
from support.store_contract import LASTING, PRESENT, fresh_shard, taken
from support.store_strategies import any_jobs, cut_rows, group_rows, names

pytestmark = pytest.mark.contract

# The store is shared by all examples; each uses a shard of its own.
shared_store = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])

# From seconds to nearly the maximum TTL of Cassandra, as milliseconds from now on.
LIVES = [LASTING, LASTING + 1, 40 * 86_400_000, 15 * 365 * 86_400_000]


def keyed(rows: Sequence[CutRow]) -> tuple[CutRow, ...]:
    """At most one row a bucket, newest first."""
    return tuple(sorted({row.bucket: row for row in rows}.values(), key=lambda row: -row.bucket))


def keyed_groups(rows: Sequence[GroupRow]) -> tuple[GroupRow, ...]:
    """At most one row for each (bucket, group), in a manifest's order."""
    single = {(row.bucket, row.group): row for row in rows}
    return tuple(sorted(single.values(), key=lambda row: (-row.bucket, row.group)))


@shared_store
@given(data=st.data())
def test_any_rows_are_read_as_they_were_committed(store: Store, data: st.DataObject) -> None:
    expires = [PRESENT + life for life in LIVES]
    cuts = keyed(data.draw(st.lists(cut_rows(expires), max_size=4)))
    groups = keyed_groups(data.draw(st.lists(group_rows(expires), max_size=4)))
    next_part_id = data.draw(st.integers(0, 2**32))
    topic_id = data.draw(names)
    shard = fresh_shard()
    store.commit(taken(store, shard), ManifestWrite(cuts, groups, next_part_id, topic_id, present=PRESENT))
    rows = store.manifest(shard)
    assert rows is not None
    assert rows.cuts == cuts
    assert rows.groups == groups
    assert (rows.state.next_part_id, rows.state.topic_id) == (next_part_id, topic_id)


@shared_store
@given(data=st.data())
def test_any_job_is_read_as_it_was_added(store: Store, data: st.DataObject) -> None:
    job: Job = data.draw(any_jobs(LASTING))
    assert store.add_job(job)
    assert store.jobs(job.shard) == [job]

"""`strandline recover verify` on a real Cassandra, written by real shard processes that were killed meanwhile."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from cassandra.cluster import Session

from strandline.clock import SystemClock
from strandline.errors import ExitCode
from strandline.index.policy import BucketPolicy
from strandline.node.stack import Stack
from strandline.store.connection import connect
from strandline.store.rows import SegmentsOf
from support.cassandra_store import connection_to
from support.deployment import GROUPS, HOUR, Deployment
from support.verifying import assert_sound

pytestmark = pytest.mark.system

HOURS, RECORDS, SERIES = 5, 6, 40
POLICY = BucketPolicy(flush_interval=HOUR, retention=48 * HOUR, margin=26 * HOUR, stale_after=HOUR)


@pytest.fixture
def deployment(stack: Stack, tmp_path: Path) -> Iterator[Deployment]:
    deployed = Deployment(stack, tmp_path, replay={"mode": "direct"})
    with closing(deployed.store):
        yield deployed


@contextmanager
def session_of(stack: Stack) -> Iterator[Session]:
    session = connect(connection_to(stack, "recovery"))
    try:
        yield session
    finally:
        session.cluster.shutdown()


def sound(deployment: Deployment) -> None:
    assert_sound(deployment.store, deployment.shard(), GROUPS, POLICY, clock=SystemClock())


def test_data_of_killed_processes_is_consistent_until_a_segment_is_deleted(
    deployment: Deployment, stack: Stack
) -> None:
    deployment.produce_hours(HOURS, records=RECORDS, series=SERIES)
    process = deployment.start()
    try:
        process.wait_for("something is stored", lambda status: status["counters"]["stored_samples"] > 0)
    finally:
        process.kill()
    sound(deployment)
    process = deployment.start()
    try:
        process.wait_for(
            "all is stored",
            lambda status: status["checkpoint"] >= HOURS * RECORDS and status["phase"] == "active",
        )
        code, document = deployment.command("recover", "verify")
        assert (code, document["sound"]) == (ExitCode.OK, True)
        assert [note["kind"] for note in document["shards"][0]["notes"]] == ["copy-not-checked"], (
            "the shard is still running"
        )
        assert process.status()["phase"] == "active"
    finally:
        process.kill()

    code, document = deployment.command("recover", "verify")
    (shard,) = document["shards"]
    assert (code, shard["findings"], shard["notes"]) == (ExitCode.OK, [], [])
    assert shard["counts"]["samples"] == HOURS * RECORDS * SERIES
    assert shard["counts"]["keys"] == shard["counts"]["documents"] == SERIES
    sound(deployment)

    manifest = deployment.store.manifest(deployment.shard())
    assert manifest is not None
    row = next(row for row in manifest.groups if row.samples)
    where = SegmentsOf(deployment.shard(), row.bucket, row.group, row.attempt)
    (segment,) = deployment.store.segments(where)
    with session_of(stack) as session:
        session.execute(
            'DELETE FROM recovery.segments WHERE dataset = %s AND shard = 0 AND bucket = %s AND "group" = %s'
            " AND attempt = %s AND first = %s AND seq = %s",
            (deployment.name, row.bucket, row.group, row.attempt, segment.first, segment.seq),
        )
    for extra in ((), ("--no-samples", "--shard", "0")):
        code, document = deployment.command("recover", "verify", *extra)
        assert (code, document["sound"]) == (ExitCode.VERIFY_FAILED, False)
        (finding,) = document["shards"][0]["findings"]
        assert (finding["kind"], finding["bucket"], finding["group"]) == ("segment-missing", row.bucket, row.group)
        assert row.attempt in finding["what"]

"""Cuts are decisions: a start makes and commits them before it reads, with a present read before the request for the
log's end.
"""

import pytest

from strandline.node.shard.log import LogEnds
from strandline.node.shard.options import ReplayMode
from support.shard_world import HOUR, MINUTE, START, World, produce_everywhere

pytestmark = pytest.mark.simulation

BUCKET = START // HOUR


@pytest.mark.parametrize("mode", [ReplayMode.DIRECT, ReplayMode.SPARK])
def test_a_start_commits_the_cuts_of_all_complete_buckets_before_it_reads(world: World, mode: ReplayMode) -> None:
    """The shard or the workers that read the records, and the next owner, agree on the cuts regardless of later clock
    readings.
    """
    world.start()
    world.crash()
    for name in "abc":
        produce_everywhere(world, name)
        world.pass_time(HOUR)
    world.replay_by(mode)
    world.start()
    cuts = sorted((cut.bucket, cut.start, cut.end) for cut in world.manifest().cuts if not cut.reset)
    assert cuts == [(BUCKET, 0, 1), (BUCKET + 1, 1, 2), (BUCKET + 2, 2, 3)]
    assert world.status.counters.records == 0


def test_records_that_arrive_during_the_request_for_the_end_of_the_log_are_in_their_bucket(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket is overdue by the present from before the request: all records that had arrived by then are below the
    returned end.
    """
    world.start()
    world.crash()
    answer = world.log.ends

    def answer_slowly() -> LogEnds:
        ends = answer()
        produce_everywhere(world)
        world.pass_time(150_000)
        return ends

    # The newest records are read two and a half minutes later, the offsets are settled after as long again, and then
    # the cuts are planned.
    world.pass_time((BUCKET + 1) * HOUR - 5 * MINUTE - 10_000 - world.clock.now_ms())
    monkeypatch.setattr(world.log, "ends", answer_slowly)
    world.start()
    monkeypatch.undo()
    assert [cut.bucket for cut in world.manifest().cuts] == [BUCKET - 1]
    records = len(world.produced)
    world.pass_hours(1)
    cuts = {cut.bucket: (cut.start, cut.end) for cut in world.manifest().cuts}
    assert cuts[BUCKET] == (0, records)
    world.check_all_found()

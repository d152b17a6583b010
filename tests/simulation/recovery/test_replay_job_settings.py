"""Scenario 41: a replay job runs with the settings of its owner, not with those of the worker."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from strandline.index.sample_limits import SampleLimits
from strandline.node.shard.options import ReplayMode
from strandline.store.jobs import JobState
from strandline.wire.decode import Limits
from support.missed_hours import hours_without_a_shard, recover
from support.shard_world import World

pytestmark = pytest.mark.simulation


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start()
    return world


def test_41_a_worker_with_different_groups_and_limits_runs_a_job_with_the_owner_s(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    right = world.options
    world.options = replace(right, groups=3, sample_limits=SampleLimits(1, 1), record_limits=Limits(record_bytes=1))
    world.work()
    world.options = right
    recover(world)
    world.check_all_found()


def test_41_a_worker_that_does_not_support_a_job_s_settings_leaves_it_to_another(world: World) -> None:
    world.crash()
    hours_without_a_shard(world, 2)
    world.replay_by(ReplayMode.SPARK)
    world.start()
    for job in world.sqlite.jobs(world.options.shard):
        unsupported = json.dumps(json.loads(job.settings) | {"segment_version": 99})
        world.sqlite.replace_job(job, replace(job, settings=unsupported))
    with capture_logs() as lines:
        world.work()
    assert all(job.state is JobState.PENDING and not job.failures for job in world.sqlite.jobs(world.options.shard))
    assert any("segment_version = 99" in line.get("error", "") for line in lines)

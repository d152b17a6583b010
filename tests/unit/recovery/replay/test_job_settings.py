"""The settings that a job's outcome depends on are stored with the job."""

import json
from dataclasses import fields, replace

import pytest

from strandline.index.sample_limits import SampleLimits
from strandline.recovery.replay.job_settings import IncompatibleJob, group_by_settings, settings_of, settings_text
from strandline.recovery.replay.replay_input import ReplaySettings
from strandline.store.jobs import Job
from strandline.wire.decode import Limits
from support.manifest_rows import NEVER, SHARD

pytestmark = pytest.mark.unit

OWNERS = ReplaySettings(16, 3_600_000, Limits(1_000, 7, 8, 9), SampleLimits(60_000, None), 5_000)
OTHERS = ReplaySettings(4, 1_800_000, Limits(), SampleLimits(None, 10), 7_000, unit_samples=11)


def job(text: str = settings_text(OWNERS)) -> Job:
    return Job(SHARD, 8, "plan", 100, 150, frozenset({0}), wants_keys=True, life=NEVER, settings=text)


def changed(**values: object) -> Job:
    return job(json.dumps(json.loads(settings_text(OWNERS)) | values))


def test_a_worker_takes_all_settings_from_the_job_except_the_division_of_work() -> None:
    assert settings_of(job(), OTHERS) == replace(OWNERS, unit_samples=OTHERS.unit_samples)


def test_every_field_of_the_settings_is_covered() -> None:
    assert {field.name for field in fields(ReplaySettings)} - {"unit_samples"} <= json.loads(
        settings_text(OWNERS)
    ).keys()


def test_a_job_of_the_previous_version_is_run_with_the_worker_s_own_settings() -> None:
    assert settings_of(job(""), OTHERS) is OTHERS


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"segment_version": 99}, "segment_version = 99, but this worker writes 1"),
        ({"key_hash": "md5"}, "key_hash = md5, but this worker writes xxh3-128"),
        ({"result_version": 7}, "result_version = 7"),
        ({"precision": 3}, "precision"),
    ],
)
def test_41_a_job_with_other_settings_is_refused_by_name(values: dict[str, object], named: str) -> None:
    with pytest.raises(IncompatibleJob, match=f"the job for bucket 8 of metrics/.*{named}"):
        settings_of(changed(**values), OTHERS)


def test_jobs_with_the_same_settings_are_run_together() -> None:
    first, second = job(), replace(job(), bucket=9)
    other = replace(job(""), bucket=10)
    found = list(group_by_settings([first, other, second], OTHERS))
    assert [some for _, some in found] == [[first, second], [other]]
    assert [settings.groups for settings, _ in found] == [16, 4]

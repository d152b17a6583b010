"""The settings that determine the output of a replay job. The job carries them.

The owner of a shard stores how it would read the records: groups, limits, lifetimes and formats. A worker reads them in
exactly that way, whatever its own settings file contains, or leaves the job to another worker.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from strandline.errors import Fatal
from strandline.index.sample_limits import SampleLimits
from strandline.recovery.leasing import describe
from strandline.recovery.replay.replay_input import ReplaySettings
from strandline.recovery.replay.sections import VERSION as RESULT_VERSION
from strandline.store.jobs import Job
from strandline.store.segment_codec import VERSION as SEGMENT_VERSION
from strandline.wire.decode import Limits

_FORMATS = {"key_hash": "xxh3-128", "segment_version": SEGMENT_VERSION, "result_version": RESULT_VERSION}
_FIELDS = {"groups", "flush_interval", "record_limits", "sample_limits", "time_to_live"}


class IncompatibleJob(Fatal):
    """The worker can't do a job exactly as its owner would."""


def settings_text(settings: ReplaySettings) -> str:
    """Settings in the form that a job carries."""
    fields = asdict(settings)
    del fields["unit_samples"]  # How a job is divided does not change its output.
    return json.dumps(_FORMATS | fields, sort_keys=True)


def settings_of(job: Job, own: ReplaySettings) -> ReplaySettings:
    """The settings to use for a job. A job of an older version carries none and is done with the worker's `own`
    settings.

    Raises `IncompatibleJob` for formats that this version does not write, and for unknown settings.
    """
    if not job.settings:
        return own
    fields: dict[str, Any] = json.loads(job.settings)
    for name, here in _FORMATS.items():
        wanted = fields.pop(name, None)
        if wanted != here:
            raise IncompatibleJob(
                f"{describe(job)} needs {name} = {wanted}, but this worker writes {here}",
                remedy="Run workers of the same version as the node",
            )
    if fields.keys() != _FIELDS:
        unknown = sorted(fields.keys() ^ _FIELDS)
        raise IncompatibleJob(
            f"{describe(job)} has other settings than this worker knows: {', '.join(unknown)}",
            remedy="Run workers of the same version as the node",
        )
    return replace(
        own,
        groups=fields["groups"],
        flush_interval=fields["flush_interval"],
        record_limits=Limits(**fields["record_limits"]),
        sample_limits=SampleLimits(**fields["sample_limits"]),
        time_to_live=fields["time_to_live"],
    )


def group_by_settings(jobs: Sequence[Job], own: ReplaySettings) -> Iterator[tuple[ReplaySettings, list[Job]]]:
    """Jobs grouped by their settings."""
    for text in dict.fromkeys(job.settings for job in jobs):
        some = [job for job in jobs if job.settings == text]
        yield settings_of(some[0], own), some

"""The metric families of bulk jobs. Pure."""

from strandline.node.job_watch.figures import JobsFigures, ObservedJob
from strandline.node.metrics import job_metrics as bulk
from strandline.node.metrics.families import Families
from strandline.store.bulk_jobs import BulkJobState
from strandline.store.jobs import JobState


def put_jobs(families: Families, figures: JobsFigures, now: int, monotonic: float) -> None:
    """The jobs as of the last read. Ages are as of the scrape, so that they keep rising if reads fail."""
    families.put(bulk.FAILURES, figures.failures)
    looked_at = figures.looked_at if figures.looked_at is not None else figures.began_at
    families.put(bulk.AGE, max(0, now - looked_at) / 1000 if looked_at is not None else None)
    kinds: dict[str, list[ObservedJob]] = {kind: [] for kind in sorted(figures.done)}
    for job in figures.jobs.values():
        kinds.setdefault(job.row.kind, []).append(job)
    for kind, jobs in kinds.items():
        _put_kind(families, kind, jobs, now)
        families.put(bulk.STALLED, figures.stalled_s(kind, now, monotonic), kind)
    for kind, done in figures.done.items():
        families.put(bulk.RECORDS, done.records, kind)
        families.put(bulk.SAMPLES, done.samples, kind)
        families.put(bulk.BAD_RECORDS, done.bad, kind)
        families.put(bulk.REFUSED_RECORDS, done.refused, kind)
        families.put(bulk.BYTES, done.bytes, kind)


def _put_kind(families: Families, kind: str, jobs: list[ObservedJob], now: int) -> None:
    for state in BulkJobState:
        families.put(bulk.BY_STATE, sum(job.row.state is state for job in jobs), kind, state.value)
    summaries = [job.summary for job in jobs]
    parts = {
        JobState.PENDING: sum(one.parts - one.parts_done - one.parts_leased - one.parts_failed for one in summaries),
        JobState.LEASED: sum(one.parts_leased for one in summaries),
        JobState.DONE: sum(one.parts_done for one in summaries),
        JobState.FAILED: sum(one.parts_failed for one in summaries),
    }
    for part_state, number in parts.items():
        families.put(bulk.PARTS, number, kind, part_state.value)
    expiries = [one.expires_at for one in summaries if one.expires_at is not None]
    families.put(bulk.EXPIRY, max(0, min(expiries) - now) / 1000 if expiries else None, kind)

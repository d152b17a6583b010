"""Exports as a kind of job: a part writes one file, and completing the job writes the manifest of each day."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace

import structlog

from strandline.clock import Clock
from strandline.jobs.completing import Completion
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.exporting.day_manifest import NAME, DayManifest, file_name, fingerprint, folder_of, job_of
from strandline.jobs.exporting.day_plan import DayPlan, PlanMissing, read_day, read_task
from strandline.jobs.exporting.label_sort import LabelSort
from strandline.jobs.exporting.parquet_file import samples_by_hour, write_file
from strandline.jobs.exporting.spec import ExportPart, ExportSpec
from strandline.jobs.exporting.target import Target
from strandline.jobs.outcome import FileWritten, PartOutcome, SamplesByTime
from strandline.jobs.reading.arrow_batches import SampleColumns
from strandline.jobs.reading.pins import RowId, expired_rows
from strandline.jobs.reading.series_reading import read_slices
from strandline.jobs.running import FencePart, RunningPart
from strandline.jobs.transitions import ENDED
from strandline.recovery.periods import HOUR
from strandline.store.bulk_jobs import BulkJob, BulkPart
from strandline.store.protocol import Store
from strandline.store.rows import ShardId

_LOG = structlog.get_logger(__name__)
EXPORT = "export"


class ExportKind:
    """The `JobKind` of exports."""

    def __init__(
        self,
        open_store: Callable[[], Store],
        clock: Clock,
        open_target: Callable[[str], Target] = Target,
        completion: Completion | None = None,
    ) -> None:
        """Without a `completion`, completing a job only writes its days and adds its report."""
        self._open_store, self._clock, self._open_target = open_store, clock, open_target
        self._completion = completion or Completion(clock)

    def run(self, running: RunningPart) -> PartOutcome:
        """Write a part's file. Its name is unique to this lease, so files of lost attempts are never listed."""
        spec, part = ExportSpec.from_json(running.job.spec), ExportPart.from_json(running.part.source)
        target = self._open_target(spec.to)
        task = read_task(target, spec.plan, part.day, part.range)
        path = f"{folder_of(part.day)}/{file_name(running.job.job, running.part.part, running.part.epoch)}"
        counter = _ExportCounter(running)
        with closing(self._open_store()) as store, LabelSort(task.series) as sort:
            for slice_ in read_slices(store, task, self._clock, running.check):
                sort.add(slice_)
                counter.read(slice_.run.samples)
            written = write_file(target, path, counter.counted(sort.sorted()))
        return counter.outcome(written)

    def fencing(self, job: BulkJob) -> AbstractContextManager[FencePart]:  # noqa: ARG002 - required by the protocol
        """Nothing to fence: files become valid only when the job completes."""
        return nullcontext(lambda _part: None)

    def complete(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write the manifest of each day and delete its invalid files; finally delete the plan."""
        spec = ExportSpec.from_json(job.spec)
        target = self._open_target(spec.to)
        with closing(self._open_store()) as store:
            for day in spec.days:
                files = [
                    file
                    for part in sorted(parts, key=lambda one: one.part)
                    if ExportPart.from_json(part.source).day == day
                    for file in PartOutcome.from_json(part.outcome).files
                ]
                try:
                    plan = read_day(target, spec.plan, day)
                except PlanMissing:
                    # Deleted by a worker that crashed before it stored that the job is done.
                    if not _is_exported(target, day, job.job):
                        raise
                    continue
                self._complete_day(target, plan, job, files, store)
        done = self._completion.finish(job, parts)
        if done != job:
            target.remove_folder(spec.plan)
        return done

    def announce(self, job: BulkJob, parts: Sequence[BulkPart]) -> BulkJob:
        """Write the event of the job, and add its report."""
        return self._completion.announce(job, parts)

    def _complete_day(
        self, target: Target, plan: DayPlan, job: BulkJob, files: Sequence[FileWritten], store: Store
    ) -> None:
        rows = tuple(sorted(row.id for row in plan.rows))
        made = DayManifest(plan.day, plan.revision, plan.ready, job.job, tuple(files), rows)
        content = made.to_json()
        before = target.read(made.path)
        former = DayManifest.from_json(before, target.uri_of(made.path)) if before is not None else None
        kept = ""
        if before != content and fingerprint(before) != plan.former:
            kept = "another export has replaced it meanwhile"
        elif before != content and former is not None and self._any_expired(former.rows, plan.day.dataset, store):
            kept = "rows it was made from have expired meanwhile"
        if kept:
            _LOG.warning("exported day not replaced", day=plan.day.date, why=kept)
        elif before != content:
            target.write(made.path, content)
        valid_manifest = former if kept and former is not None else made
        self._clean(target, valid_manifest, job.job, store)

    def _any_expired(self, rows: Sequence[RowId], dataset: str, store: Store) -> bool:
        manifests = {shard: store.manifest(ShardId(dataset, shard)) for shard in {row.shard for row in rows}}
        time = store.server_time()
        now = time if time is not None else self._clock.now_ms()
        return bool(expired_rows(rows, {shard: one for shard, one in manifests.items() if one is not None}, now))

    def _clean(self, target: Target, manifest: DayManifest, job: str, store: Store) -> None:
        """Delete files of a day that its manifest does not list: those of former exports and of lost attempts, but not
        those of another job that has not ended.
        """
        valid = {file.name for file in manifest.files}
        for name in target.names(manifest.day.folder):
            writer = job_of(name)
            if name == NAME or name in valid or not writer:
                continue
            other = store.bulk_job(manifest.day.dataset, writer) if writer != job else None
            if other is None or other.state in ENDED:
                target.remove(f"{manifest.day.folder}/{name}")


def _is_exported(target: Target, day: str, job: str) -> bool:
    """Whether the manifest of a day was written by a job or a later one."""
    path = f"{folder_of(day)}/{NAME}"
    content = target.read(path)
    if content is None:
        return False
    found = DayManifest.from_json(content, target.uri_of(path))
    # Job ids begin with the time of planning.
    return found.job >= job


class _ExportCounter:
    """Counts what an attempt at a part has read and written."""

    def __init__(self, running: RunningPart) -> None:
        self._running = running
        self._counts = Counts()
        self._series = 0
        self._hours: dict[int, int] = {}

    def read(self, samples: int) -> None:
        self._counts = replace(self._counts, records=self._counts.records + samples)
        self._report()

    def counted(self, pieces: Iterator[SampleColumns]) -> Iterator[SampleColumns]:
        for piece in pieces:
            self._series += len(piece.labels)
            for hour, count in samples_by_hour(piece, HOUR).items():
                self._hours[hour] = self._hours.get(hour, 0) + count
            yield piece
            self._counts = replace(self._counts, samples=self._counts.samples + len(piece.time))
            self._report()

    def outcome(self, written: FileWritten | None) -> PartOutcome:
        files = () if written is None else (written,)
        size = sum(file.bytes for file in files)
        return PartOutcome(
            replace(self._counts, sent=len(files), bytes=size),
            chunks=len(files),
            series=self._series,
            times=SamplesByTime.joined([SamplesByTime(HOUR, self._hours)]),
            files=files,
        )

    def _report(self) -> None:
        self._running.report(AttemptCounts(self._counts, self._counts))

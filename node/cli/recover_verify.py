"""`strandline recover verify`: verifies that what is stored is complete and consistent."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import click

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal, StrandlineError
from strandline.index.vm import start_vm
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.output import Block, Table
from strandline.node.query.coverage import ranges
from strandline.node.settings.sections import Settings
from strandline.node.settings.units import Duration
from strandline.node.shard.assembling import open_store
from strandline.node.shard.configuring import shard_options
from strandline.node.shard.folder_lock import FolderInUse, locked
from strandline.node.shard.options import ShardOptions
from strandline.node.shard.ownership import ensure_dataset
from strandline.node.steps import Step
from strandline.node.supervisor.partitions import count_partitions
from strandline.recovery.verification.findings import Counts, Finding, Note, NoteKind, counted
from strandline.recovery.verification.layout import ShardLayout
from strandline.recovery.verification.shard import Scope, Verification, verify_shard
from strandline.store.protocol import Store
from strandline.store.rows import DatasetShape, ShardId

# The search for partitions that were added after the dataset was created ends after this many in a row have no state.
_MAX_GAP = 8
_COUNT_TIMEOUT = Duration.parse("5s")


class NothingToVerify(Fatal):
    """The store has no such dataset or shard."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class VerifiedShard:
    """The findings in one shard."""

    shard: int
    sound: bool
    counts: Counts
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The findings in a dataset. `unread` are partitions that no node has ever read: nothing is stored of them, and
    answers lack their series. `uncounted` is the reason why the number of partitions is unknown.
    """

    dataset: str
    flush_interval: int
    sound: bool
    shards: tuple[VerifiedShard, ...]
    unread: tuple[int, ...] = ()
    uncounted: str = ""

    def blocks(self) -> Iterator[Block]:
        """Counts, then findings, then notes."""
        yield Table(
            ("shard", "buckets", "rows", "segments", "MB", "series", "samples", "keys", "documents", "findings"),
            tuple(_row_of(one) for one in self.shards),
        )
        yield ""
        number = sum(len(one.findings) for one in self.shards)
        yield self._headline(number)
        for one in self.shards:
            for finding in one.findings:
                yield f"  {self._where(one.shard, finding.bucket)}: {finding.what} [{finding.kind}]"
                yield f"    {finding.remedy}"
        for one in self.shards:
            for note in one.notes:
                yield f"note: {self._where(one.shard, note.bucket)}: {note.what}"
        if self.uncounted:
            yield f"note: can't check for partitions that no node reads: {self.uncounted}"

    def _headline(self, number: int) -> str:
        unread = ""
        if self.unread:
            noun, have = ("partition", "has") if len(self.unread) == 1 else ("partitions", "have")
            unread = f"{noun} {ranges(self.unread)} {have} never been read by a node: nothing of them is stored"
        if number:
            return f"{counted(number, 'finding')}{f', and {unread}' if unread else ''}:"
        return f"No findings, but {unread}." if unread else "No findings."

    def _where(self, shard: int, bucket: int | None) -> str:
        if bucket is None:
            return f"shard {shard}"
        begins = datetime.fromtimestamp(bucket * self.flush_interval / 1000, UTC)
        return f"shard {shard}, bucket {bucket} ({begins:%Y-%m-%dT%H:%M:%SZ})"


@click.command(
    "verify",
    cls=Command,
    help=help_with(
        "Verify that everything in the manifest exists and is consistent: the manifest has no holes, all segments exist"
        " with the right checksums, index buckets, Lucene, bitmaps and segments agree, and each key has exactly one id."
        " Writes nothing and takes no ownership, so nodes can keep running. Findings are listed, and the exit code is"
        " 4. Partitions of the topic that no node has ever read are listed, too.",
        "strandline recover verify",
        "strandline recover verify --shard 0 --shard 3",
        "strandline recover verify --no-samples --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.VERIFY_FAILED)),
)
@click.option("--shard", "shards", metavar="N", type=click.IntRange(min=0), multiple=True, help="Only these shards.")
@click.option(
    "--no-samples",
    is_flag=True,
    help="Check segments' checksums and series, but don't decode their samples. Faster.",
)
@pass_context
def command(context: Context, *, shards: tuple[int, ...], no_samples: bool) -> ExitCode:
    """Verify."""
    settings = context.settings()
    data_folder = settings.shard.data_folder(context.environ)
    _check_file(settings, data_folder)
    with closing(open_store(settings, data_folder, context.clock)) as store:
        name = settings.dataset.name
        shape = store.dataset(name)
        if shape is None:
            raise NothingToVerify(
                f"the store has no dataset {name!r}", remedy="Check dataset.name, and that this is the right store"
            )
        ensure_dataset(store, _wanted_shape(settings, shape, data_folder))
        partitions, uncounted = (None, "") if shards else _counted_partitions(settings)
        chosen = _chosen(store, shape, shards, partitions)
        start_vm(settings.shard.java_heap.bytes >> 20)
        verified = []
        with context.output.steps(f"Verifying {counted(len(chosen), 'shard')} of dataset {name}") as steps:
            for shard in chosen:
                with steps.step(f"shard {shard}") as step:
                    options = _options(settings, shape, shard, data_folder)
                    found = _verify(store, options, context.clock, samples=not no_samples, on_progress=_shown_in(step))
                    step.note = counted(len(found.findings), "finding") if found.findings else "no findings"
                verified.append(VerifiedShard(shard, not found.findings, found.counts, found.findings, found.notes))
        unread = tuple(shard for shard in chosen if store.state(ShardId(name, shard)) is None)
    is_sound = all(one.sound for one in verified)
    report = VerifyReport(name, shape.flush_interval, is_sound, tuple(verified), unread, uncounted)
    context.output.result(report)
    return ExitCode.OK if report.sound else ExitCode.VERIFY_FAILED


def _shown_in(step: Step) -> Callable[[int, int], None]:
    def on_progress(done: int, of: int) -> None:
        step.fraction, step.note = done / max(1, of), f"{done:,} of {of:,} rows"

    return on_progress


def _verify(
    store: Store, options: ShardOptions, clock: Clock, *, samples: bool, on_progress: Callable[[int, int], None]
) -> Verification:
    manifest = store.manifest(options.shard)
    if manifest is None:
        never = Note(NoteKind.NEVER_READ, None, None, "no node has ever read it")
        return Verification(Counts(), (), (never,))
    with tempfile.TemporaryDirectory(prefix="strandline-verify-") as name:
        folder = Path(name)
        copy, notes = _copied(options.folder, folder / "copy")
        (folder / "scratch").mkdir()
        found = verify_shard(
            store,
            manifest,
            ShardLayout(options.shard, options.groups, options.policy),
            clock,
            scope=Scope(samples=samples, scratch=folder / "scratch", copy=copy),
            on_progress=on_progress,
        )
    return replace(found, notes=(*found.notes, *notes))


def _copied(shard_folder: Path, target: Path) -> tuple[Path | None, Sequence[Note]]:
    """A copy of a shard's local copy: the shard may need its folder at any time, and opening an index removes unused
    files. None if there is no local copy, or a shard is using it.
    """
    source = shard_folder / "index"
    if not source.is_dir():
        return None, ()
    try:
        with locked(shard_folder):
            shutil.copytree(source, target)
    except FolderInUse:
        why = "a shard is using it"
    except (OSError, shutil.Error) as error:
        why = f"it can't be read: {error}"
    else:
        return target, ()
    return None, (Note(NoteKind.COPY_NOT_CHECKED, None, None, f"the local copy in {source} was not checked: {why}"),)


def _counted_partitions(settings: Settings) -> tuple[int | None, str]:
    """The number of partitions of the topic, or None and the reason. Nothing else here needs Kafka."""
    timeout = min(settings.kafka.request_timeout, _COUNT_TIMEOUT)
    kafka = settings.kafka.model_copy(update={"request_timeout": timeout})
    try:
        return count_partitions(settings.model_copy(update={"kafka": kafka})), ""
    except StrandlineError as error:
        return None, error.message


def _chosen(store: Store, shape: DatasetShape, wanted: Sequence[int], partitions: int | None) -> Sequence[int]:
    if not wanted:
        known = max(shape.partitions, partitions or 0)
        return [*range(known), *_later(store, shape, known)]
    for shard in wanted:
        if store.state(ShardId(shape.dataset, shard)) is None:
            raise NothingToVerify(
                f"shard {shard} of dataset {shape.dataset!r} has never been read by a node",
                remedy=f"The dataset was created with {counted(shape.partitions, 'partition')}, numbered from 0",
            )
    return sorted(set(wanted))


def _later(store: Store, shape: DatasetShape, known: int) -> Iterator[int]:
    """Partitions after the known ones that were read."""
    shard, missing = known, 0
    while missing < _MAX_GAP:
        if store.state(ShardId(shape.dataset, shard)) is not None:
            yield shard
            missing = 0
        else:
            missing += 1
        shard += 1


def _check_file(settings: Settings, data_folder: Path) -> None:
    path = settings.store.sqlite_path(data_folder)
    # Opening the file would create it.
    if settings.store.kind == "sqlite" and not path.exists():
        raise NothingToVerify(f"there is no store at {path}", remedy="Check store.sqlite_file and shard.data_dir")


def _wanted_shape(settings: Settings, shape: DatasetShape, data_folder: Path) -> DatasetShape:
    return _options(settings, shape, 0, data_folder).shape


def _options(settings: Settings, shape: DatasetShape, shard: int, data_folder: Path) -> ShardOptions:
    """The options of a shard. The topic's retention is not read from Kafka: nothing here depends on it."""
    return shard_options(
        settings, shard=shard, partitions=shape.partitions, topic_retention_ms=0, data_folder=data_folder
    )


def _row_of(one: VerifiedShard) -> tuple[str, ...]:
    counts = one.counts
    megabytes = (counts.bytes + counts.index_bytes) / 1e6
    return (
        str(one.shard),
        f"{counts.buckets:,}",
        f"{counts.groups:,}",
        f"{counts.segments:,}",
        f"{megabytes:,.1f}",
        f"{counts.series:,}",
        f"{counts.samples:,}",
        f"{counts.keys:,}",
        f"{counts.documents:,}",
        f"{len(one.findings):,}",
    )

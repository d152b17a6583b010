"""Verifies jobs, and the report of `strandline job verify`."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.clock import Clock
from strandline.errors import ExitCode, Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.import_kind import IMPORT
from strandline.jobs.landing.kafka_counting import count_records
from strandline.jobs.sending.send_kind import SEND
from strandline.jobs.sending.series import SeriesQuery
from strandline.jobs.sending.spec import HASHES, SendSpec
from strandline.jobs.verifying.imports import ImportVerified, ImportVerifier
from strandline.jobs.verifying.sends import SendVerified, verify_messages
from strandline.node.client.sample_reader import NodeSamples
from strandline.node.client.series_source import NodeSeries, nodes_of
from strandline.node.output import Block, Table
from strandline.node.recovering.formatting import count, moment
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings
from strandline.time_range import TimeRange

_MAX_SHOWN = 50
_ANY = '{__name__!=""}'
# Allowance for wrong clocks of brokers.
_SLACK_MS = 3_600_000


class CantVerify(Fatal):
    """Jobs of this kind can't be verified."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class JobVerified:
    """The result of a verification. `parts_done` parts were compared."""

    job: str
    kind: str
    parts: int
    parts_done: int
    sound: bool
    imported: ImportVerified | None = None
    sent: SendVerified | None = None

    @property
    def exit_code(self) -> ExitCode:
        """4 for missing or different samples or messages, 6 if samples can't be read yet."""
        if not self.sound:
            return ExitCode.VERIFY_FAILED
        return ExitCode.NOT_READY if self.imported is not None and self.imported.unreadable else ExitCode.OK

    def blocks(self) -> list[Block]:
        """Tables and lines."""
        found: list[Block] = []
        if self.parts_done < self.parts:
            found.append(f"{count(self.parts_done)} of {count(self.parts)} parts are done; only these were compared.")
        if self.imported is not None:
            found += _import_blocks(self.imported)
        if self.sent is not None:
            found += _send_blocks(self.sent)
        return found


def verify_job(
    settings: Settings,
    board: BulkBoard,
    name: str,
    clock: Clock,
    *,
    all_of_it: bool,
    on_progress: Callable[[int], None] = lambda _parts: None,
) -> JobVerified:
    """Read back what a job has sent, and compare it. `on_progress` gets the number of compared parts."""
    job = board.job(name)
    parts = board.parts(job)
    done = sum(bool(part.outcome) for part in parts)
    match job.kind:
        case kind if kind == IMPORT:
            oldest = clock.now_ms() - settings.dataset.retention.milliseconds
            nodes = nodes_of(settings)
            # Raises `AnswerIncomplete` if a partition is not served, whose samples would be reported as missing.
            NodeSeries(nodes).page(SeriesQuery(_ANY, TimeRange(0, 0), 0, HASHES - 1, 1, newest=False))
            verifier = ImportVerifier(NodeSamples(nodes), clock, oldest)
            found = ImportVerified()
            for one in verifier.verify(job, parts, all_of_it=all_of_it):
                found += one
                on_progress(found.parts)
            is_sound = not found.missing and not found.different
            return JobVerified(name, kind, len(parts), done, is_sound, imported=found)
        case kind if kind == SEND:
            kafka, topic = librdkafka_options(settings.kafka), SendSpec.from_json(job.spec).topic
            sent = verify_messages(parts, count_records(kafka, topic, job.job, job.created_at - _SLACK_MS, clock))
            return JobVerified(name, kind, len(parts), done, not sent.wrong, sent=sent)
        case kind:
            raise CantVerify(
                f"{job.name} is of the kind {kind}, which can't be verified",
                remedy="Only imports and sends can be verified",
            )


def _import_blocks(found: ImportVerified) -> list[Block]:
    headings = ("parts", "series", "samples compared", "missing", "different", "expired", "not readable yet")
    figures = (
        found.parts,
        found.series,
        found.samples,
        found.missing,
        found.different,
        found.expired,
        found.unreadable,
    )
    blocks: list[Block] = [Table(headings, (tuple(map(count, figures)),))]
    if found.unreadable:
        blocks.append(f"{count(found.unreadable)} samples can't be read yet: {found.reason}")
    if found.examples:
        rows = tuple(
            (one.series, moment(one.time), repr(one.sent), "missing" if one.found is None else repr(one.found))
            for one in found.examples
        )
        blocks.append(Table(("series", "time", "imported", "found"), rows))
    if found.different:
        blocks.append(
            "Samples that were written again since then are different, and so are samples that several parts contain."
        )
    if not found.missing and not found.different and found.samples:
        blocks.append("All compared samples are as they were imported.")
    return blocks


def _send_blocks(found: SendVerified) -> list[Block]:
    blocks: list[Block] = [
        f"{count(found.sent)} messages were sent by {count(found.parts)} parts, and the topic has {count(found.found)}."
    ]
    if found.wrong:
        rows = tuple((count(one.part), count(one.sent), count(one.found)) for one in found.wrong[:_MAX_SHOWN])
        blocks.append(Table(("part", "sent", "in the topic"), rows))
        blocks.append("If the topic deletes or compacts records, some of them may be gone.")
    return blocks

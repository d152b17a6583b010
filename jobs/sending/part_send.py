"""Runs a part of a send: reads its series in pages, renders messages, and lands and counts them in chunks.

Series are read in the order of their key hashes, and each chunk commits the hash of its last series. A worker that
takes over a part continues with the series after that hash, so no series is sent twice. Values are those at the time of
sending. A series that appears later is sent if its hash is after the committed one. Landed messages can't be rendered
again as they were, so the counts of landed chunks are those committed with them, and for their bad records only the
number is known.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from strandline.errors import Retryable
from strandline.jobs.bad_records import MAX_EXAMPLES, MAX_EXCERPT, BadRecord, BadRecords
from strandline.jobs.control_list import pack_keys
from strandline.jobs.counts import AttemptCounts, Counts
from strandline.jobs.landing.progress import Landed, Progress
from strandline.jobs.landing.transactions import RecordsRefused
from strandline.jobs.outcome import PartOutcome
from strandline.jobs.sending.series import SentSeries, SeriesQuery, SeriesSource
from strandline.jobs.sending.spec import HashRange, SendSpec, ZoneRule
from strandline.jobs.sending.template import Message, MessageTemplate, NotRendered
from strandline.jobs.sending.zones import is_zone

EARLIER: Final = "counted before the part was resumed, so that the reason is not known"
_WORD_BITS = 64


class PageEmpty(Retryable):
    """A source has returned an empty page, but reports more series."""


class MessageLog(Protocol):
    """The part of a `PartLog` that is used after its `begin`."""

    def land(self, chunk: int, records: Sequence[Message], progress: Progress, deadline: float) -> None: ...


@dataclass(frozen=True, slots=True)
class SendHooks:
    """Callbacks for each chunk. `deadline` returns until when Kafka may be used, `before_landing` returns when the
    messages may land, `report` gets the counts, and `report_rejected` gets them before an error is raised for messages
    that Kafka rejected.
    """

    deadline: Callable[[], float]
    before_landing: Callable[[int], None] = lambda _messages: None
    report: Callable[[AttemptCounts], None] = lambda _counts: None
    report_rejected: Callable[[AttemptCounts], None] = lambda _counts: None


@dataclass(frozen=True, slots=True)
class SentChunk:
    """The messages and counts of some series. `position` is the key hash of the last of them."""

    messages: tuple[Message, ...]
    counts: Counts
    bad: BadRecords
    control: tuple[str, ...]
    position: int
    series: int


def send_part(
    spec: SendSpec, part: HashRange, source: SeriesSource, log: MessageLog, landed: Landed, *, hooks: SendHooks
) -> PartOutcome:
    """Send the series of a part that have not been sent yet. Returns the outcome of all of them."""
    template = MessageTemplate.from_table(spec.template)
    counts = before = Counts(*landed.progress.counts)
    chunks, first = landed.chunks, part.first
    bad, control = BadRecords(), list[str]()
    if landed.chunks:
        first = landed.progress.position + 1
        bad = BadRecords({EARLIER: counts.bad} if counts.bad else {})
        control += _control_before(spec, part, source, landed.progress.position)
    more = first <= part.last
    while more:
        page = source.page(_query(spec, first, part.last, newest=template.needs_newest))
        if not page.series:
            _require_end(more=page.more)
            break
        chunk = make_chunk(page.series, spec, template, counts.records)
        last, counts = counts, counts + chunk.counts
        hooks.before_landing(len(chunk.messages))
        try:
            log.land(chunks, chunk.messages, Progress(chunk.position, counts.as_numbers()), hooks.deadline())
        except RecordsRefused:
            hooks.report_rejected(AttemptCounts(last, last - before + Counts(refused=len(chunk.messages))))
            raise
        chunks += 1
        bad = BadRecords.joined((bad, chunk.bad))
        control += chunk.control
        hooks.report(AttemptCounts(counts, counts - before))
        first = chunk.position + 1
        more = (page.more or chunk.series < len(page.series)) and first <= part.last
    return PartOutcome(counts, chunks, 0, counts.records, bad=bad, control=pack_keys(control))


def make_chunk(series: Sequence[SentSeries], spec: SendSpec, template: MessageTemplate, before: int) -> SentChunk:
    """Make a chunk of the first of these series; `before` is the number of earlier series of the part. Pure."""
    is_control = _are_control(series, spec)
    messages, control, examples = list[Message](), list[str](), list[BadRecord]()
    reasons: dict[str, int] = {}
    records = size = taken = 0
    for one, is_left_out in zip(series, is_control, strict=True):
        taken += 1
        fault = _fault_of_zone(one, spec.zones) if spec.zones is not None else ""
        if fault is None:
            continue
        records += 1
        if not fault and is_left_out:
            control.append(one.text)
            continue
        message = None
        if not fault:
            message, fault = _rendered(one, template, spec.max_message)
        if message is not None:
            messages.append(message)
            size += len(message.value)
        else:
            reasons[fault] = reasons.get(fault, 0) + 1
            if len(examples) < MAX_EXAMPLES:
                examples.append(BadRecord(before + records, 0, fault, one.text[:MAX_EXCERPT]))
        if size >= spec.chunk_bytes:
            break
    counts = Counts(records, 0, sum(reasons.values()), len(messages), size)
    bad = BadRecords(reasons, tuple(examples))
    return SentChunk(tuple(messages), counts, bad, tuple(control), series[taken - 1].key, taken)


def _rendered(series: SentSeries, template: MessageTemplate, max_bytes: int) -> tuple[Message | None, str]:
    """The message of a series, or the reason why there is none."""
    try:
        message = template.render(series)
    except NotRendered as missing:
        return None, str(missing)
    if len(message.value) + len(message.key or b"") > max_bytes:
        return None, f"the message is over {max_bytes} bytes, see jobs.max_record"
    return message, ""


def _fault_of_zone(series: SentSeries, rule: ZoneRule) -> str | None:
    """Empty for a series of this job, None for one of another job, otherwise the reason why it belongs to no job."""
    zone = series.labels.get(rule.label, "")
    if zone in rule.zones:
        return ""
    if not rule.counts_others or zone in rule.planned:
        return None
    if not zone:
        return f"it has no label {rule.label}, which names its time zone"
    known = "came after the job was planned" if is_zone(zone) else "does not exist"
    return f"the time zone in {rule.label} {known}"


def _are_control(series: Sequence[SentSeries], spec: SendSpec) -> list[bool]:
    if not spec.control.fraction:
        return [False] * len(series)
    low = np.array([one.key >> _WORD_BITS for one in series], dtype=np.uint64)
    high = np.array([one.key & ((1 << _WORD_BITS) - 1) for one in series], dtype=np.uint64)
    found: list[bool] = spec.control.contains(low, high).tolist()
    return found


def _control_before(spec: SendSpec, part: HashRange, source: SeriesSource, position: int) -> list[str]:
    """The series of the control sample up to a hash. They depend on the keys alone, so they can be read again."""
    found: list[str] = []
    first, more = part.first, bool(spec.control.fraction)
    while more:
        page = source.page(_query(spec, first, position, newest=False))
        _require_end(more=page.more and not page.series)
        for one, is_control in zip(page.series, _are_control(page.series, spec), strict=True):
            if is_control and (spec.zones is None or one.labels.get(spec.zones.label, "") in spec.zones.zones):
                found.append(one.text)
        more = page.more
        first = page.series[-1].key + 1 if page.series else first
    return found


def _query(spec: SendSpec, first: int, last: int, *, newest: bool) -> SeriesQuery:
    return SeriesQuery(spec.selector, spec.window, first, last, spec.chunk_series, newest)


def _require_end(*, more: bool) -> None:
    if more:
        raise PageEmpty("a node reports more series, but has returned an empty page", remedy="The part is retried")

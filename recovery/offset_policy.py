"""Where a shard continues to read after a start: a pure function with one case for each relation of checkpoint and log.

S is the lowest checkpoint, L the first offset that the log still has, and E the offset after the last readable record.
Nothing is guessed: if data is lost or the log is a different one, an operator has to accept that first.
"""

from dataclasses import dataclass
from enum import StrEnum

from strandline.errors import ExitCode, Fatal


class StartAt(StrEnum):
    """Where to start reading a partition that was never read."""

    EARLIEST = "earliest"
    LATEST = "latest"
    LOOK_BACK = "look-back"


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The policy for a first start. `look_back` is in milliseconds and only used with `LOOK_BACK`."""

    at: StartAt = StartAt.EARLIEST
    look_back: int = 0


class DataLost(Fatal):
    """The log has deleted records that were not stored yet."""

    exit_code = ExitCode.DATA_LOST

    def __init__(self, where: str, first: int, end: int) -> None:
        super().__init__(
            f"{where} has lost the records from offset {first} up to {end}: its checkpoint is {first}, and the log"
            f" starts at {end}",
            remedy=f"Accept the loss of [{first}, {end}) if it can't be undone, and start again",
        )
        self.first, self.end = first, end


class HistoryExpired(Fatal):
    """The shard was read before, but all rows of its manifest have expired, so it is unknown up to which offset."""

    exit_code = ExitCode.DATA_LOST

    def __init__(self, where: str, log: "LogState") -> None:
        super().__init__(
            f"{where} was read before, but all rows of its manifest have expired: it was down for longer than their"
            f" lifetime. Kafka holds the offsets [{log.start}, {log.end})",
            remedy=f"Accept the loss up to offset {log.start} to read what Kafka still holds, or restore the manifest"
            " from a backup",
        )


class LogMismatch(Fatal):
    """The stored data does not belong to this log."""


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of the log. `look_back` is the offset of the look-back policy, None if there is no record after that
    time. `refilled_at` is an offset that holds a different record than the one that was read there, None if none is
    known.
    """

    topic_id: str
    start: int
    end: int
    look_back: int | None = None
    refilled_at: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """What an operator has accepted: the loss of records up to an offset, that the topic is a different one, or the
    loss of keys with damaged index buckets.
    """

    loss_to: int | None = None
    another_topic: bool = False
    index_loss: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Read from the checkpoint."""

    offset: int


@dataclass(frozen=True, slots=True)
class StartFresh:
    """Commit a first cut row with start = end = this offset, marked as a reset, and the log's topic id, in one batch.
    Then read from the offset. The id is included because a start that was interrupted may have stored a different one.
    """

    offset: int


@dataclass(frozen=True, slots=True)
class RecordLoss:
    """Commit `[first, end)` as lost, then read from `end`."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Reset:
    """Commit the new topic id and a reset at this offset, in one batch, then read from the offset."""

    offset: int


Decision = Resume | StartFresh | RecordLoss | Reset


def decide(
    where: str,
    checkpoint: int | None,
    stored_topic_id: str,
    log: LogState,
    *,
    in_dataset: bool,
    first_start: FirstStart,
    accepted: Accepted,
    furthest: int = 0,
    was_read: bool = False,
) -> Decision:
    """What to do. Raises `DataLost`, `HistoryExpired` or `LogMismatch` if an operator has to decide.

    `where` names the partition in errors. `in_dataset` is whether the partition existed when the dataset was created: a
    later one is read from its beginning, whatever the policy. `furthest` is the end of the newest cut, which may be
    after the checkpoint. `was_read` is whether the shard has stored keys although its manifest has no rows: then this
    is not a first start.
    """
    if checkpoint is None:
        return _start_fresh(
            where, log, in_dataset=in_dataset, first_start=first_start, accepted=accepted, was_read=was_read
        )
    other = _mismatch(where, checkpoint, stored_topic_id, log, furthest)
    if other is not None:
        if accepted.another_topic:
            return Reset(log.start)
        raise other
    if checkpoint < log.start:
        if accepted.loss_to is not None and accepted.loss_to >= log.start:
            return RecordLoss(checkpoint, log.start)
        raise DataLost(where, checkpoint, log.start)
    return Resume(checkpoint)


def _start_fresh(
    where: str, log: LogState, *, in_dataset: bool, first_start: FirstStart, accepted: Accepted, was_read: bool
) -> StartFresh:
    if not was_read:
        return StartFresh(_first_offset(log, first_start) if in_dataset else log.start)
    if accepted.loss_to is not None and accepted.loss_to >= log.start:
        return StartFresh(log.start)
    raise HistoryExpired(where, log)


def _mismatch(where: str, checkpoint: int, stored_topic_id: str, log: LogState, furthest: int) -> LogMismatch | None:
    """How this log differs from the one that was read; None if it does not."""
    if stored_topic_id != log.topic_id:
        return LogMismatch(
            f"{where} is another topic than the one that was read up to offset {checkpoint}: its id is {log.topic_id},"
            f" and {stored_topic_id} is stored",
            remedy="If the topic was deleted and recreated, accept that, and reading starts at its beginning, offset"
            f" {log.start}",
        )
    if max(checkpoint, furthest) > log.end:
        return LogMismatch(
            f"{where} ends at offset {log.end}, before {max(checkpoint, furthest)}, up to which it was read",
            remedy="The log was truncated or restored from an older copy: restore it, or accept a new beginning at"
            f" offset {log.start}",
        )
    if log.refilled_at is not None:
        return LogMismatch(
            f"{where} has a different record at offset {log.refilled_at} than the one that was read there: the log was"
            " truncated and refilled, as by an unclean leader election",
            remedy=f"Restore the log, or accept a new beginning at offset {log.start}",
        )
    return None


def _first_offset(log: LogState, first_start: FirstStart) -> int:
    match first_start.at:
        case StartAt.EARLIEST:
            return log.start
        case StartAt.LATEST:
            return log.end
        case StartAt.LOOK_BACK:
            # The log may change between the lookups, and the next start would refuse a checkpoint outside of it.
            return log.end if log.look_back is None else max(log.start, min(log.look_back, log.end))

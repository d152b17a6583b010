"""Detects whether the log still has the records that were read from it.

A log that was truncated and refilled, for example after an unclean leader election, can't be detected by its offsets.
Therefore a cut stores what identifies the last record before it, and a start compares.
"""

from collections.abc import Sequence

from strandline.digest import digest
from strandline.node.shard.log import LogEnds, LogUnreachable, PartitionLog, Records
from strandline.store.rows import CutRow, RecordIdentity

_READ_TIMEOUT_S, _READ_ATTEMPTS = 5.0, 12
_63_BITS = (1 << 63) - 1


def mark_of_last(records: Records) -> RecordIdentity:
    """What identifies the last of these records."""
    checksum, epoch = digest(records.values[-1]) & _63_BITS, int(records.leader_epochs[-1])
    return RecordIdentity(int(records.offsets[-1]), int(records.times[-1]), epoch if epoch >= 0 else None, checksum)


def find_refilled(log: PartitionLog, cuts: Sequence[CutRow], ends: LogEnds) -> int | None:
    """Compare the record of the newest cut that has a mark with the log. Returns its offset if the log has another
    record there, and None if it has the same record or no longer has the offset. Moves the log's position.
    """
    marks = [cut.last for cut in cuts if cut.last is not None]
    if not marks or not ends.start <= marks[-1].offset < ends.last_stable:
        return None
    log.seek(marks[-1].offset)
    for _ in range(_READ_ATTEMPTS):
        records = log.poll(1, _READ_TIMEOUT_S)
        if len(records):
            return None if _is_same(mark_of_last(records.part(0, 1)), marks[-1]) else marks[-1].offset
        if records.position > marks[-1].offset:
            return marks[-1].offset
    raise LogUnreachable(
        f"offset {marks[-1].offset} is in the log but was not read within {_READ_ATTEMPTS * _READ_TIMEOUT_S:.0f} s",
        remedy="Check that the brokers are healthy",
    )


def _is_same(found: RecordIdentity, known: RecordIdentity) -> bool:
    """Whether two marks are of the same record. A record has the epoch of the leader that appended it, on all replicas.
    Marks of older versions have no epoch.
    """
    if None not in (found.leader_epoch, known.leader_epoch) and found.leader_epoch != known.leader_epoch:
        return False
    return (found.offset, found.time, found.checksum) == (known.offset, known.time, known.checksum)

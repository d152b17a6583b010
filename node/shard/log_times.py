"""The times of a log's records: by Kafka's lookup, or by reading the records where the lookup is misleading."""

from collections.abc import Iterator

from strandline.arrays import I64s
from strandline.node.shard.log import LogUnreachable, PartitionLog
from strandline.node.shard.status import Status
from strandline.recovery.cut_planning import LogTimes

_RECORDS_PER_POLL = 10_000
_READ_TIMEOUT_S, _READ_ATTEMPTS = 5.0, 12


def log_times(log: PartitionLog, status: Status | None = None) -> LogTimes:
    """The access to a log that `planned_cuts` needs. Reading moves the log's position. Each request and each poll
    counts as an iteration in `status`.
    """

    def read(start: int, end: int) -> Iterator[tuple[I64s, I64s]]:
        log.seek(start)
        position, attempts = start, 0
        while position < end:
            records = log.poll(_RECORDS_PER_POLL, _READ_TIMEOUT_S)
            attempts = attempts + 1 if records.position == position else 0
            if attempts == _READ_ATTEMPTS:
                raise LogUnreachable(
                    f"offset {position} is in the log but was not read within {_READ_ATTEMPTS * _READ_TIMEOUT_S:.0f} s",
                    remedy="Check that the brokers are healthy",
                )
            position = records.position
            if status is not None:
                status.turns += 1
            wanted = records.offsets < end
            yield records.offsets[wanted], records.times[wanted]

    def offset_at(time: int) -> int | None:
        if status is not None:
            status.turns += 1
        return log.offset_at(time)

    return LogTimes(offset_at, read)

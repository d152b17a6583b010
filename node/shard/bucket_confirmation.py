"""Confirms the ends of a shard's closed buckets, from what it reads after them. `recovery/end_confirmation.py` has the
rule.
"""

from strandline.arrays import I64s
from strandline.node.shard.ends_watch import EndsWatch
from strandline.node.shard.flusher import Flusher
from strandline.node.shard.log import LogUnreachable
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.read_horizon import ReadHorizon
from strandline.node.throttled_warning import ThrottledWarning
from strandline.recovery.cutting import Cutting
from strandline.recovery.end_confirmation import EndConfirmation
from strandline.store.rows import CutRow

_ENDS_INTERVAL_S = 1.0


class BucketConfirmation:
    """Used by the reading thread."""

    def __init__(
        self, parts: ShardParts, flusher: Flusher, ends: EndsWatch, horizon: ReadHorizon, log_warning: ThrottledWarning
    ) -> None:
        self._parts, self._flusher, self._ends, self._horizon = parts, flusher, ends, horizon
        self._log_warning = log_warning
        self._rule = EndConfirmation(Cutting(parts.options.policy.flush_interval, parts.options.grace))

    @property
    def is_pending(self) -> bool:
        """Whether an end may still be confirmed, or that is not in the manifest yet."""
        return self._rule.is_pending or self._flusher.is_confirming

    def closed(self, bucket: int, committed: CutRow | None) -> bool:
        """A bucket was closed, at its committed cut if it has one. Returns whether its end is confirmed."""
        if committed is not None and not committed.closed_early:
            return True
        is_confirmed = self._rule.closed(bucket, self._horizon.now().complete_at)
        if is_confirmed and committed is not None:
            self._flusher.confirm_ends([bucket])
        return is_confirmed

    def read(self, times: I64s) -> None:
        """Records after the ends of the closed buckets were read."""
        self._rule.read(times)

    def check(self) -> None:
        """Confirm ends if enough is read."""
        if self._rule.is_pending and (buckets := self._rule.confirmed(self._horizon.now().complete_at)):
            self._flusher.confirm_ends(buckets)

    def give_up(self) -> None:
        """Leave the remaining ends unconfirmed: their hours wait for the next bucket."""
        self._rule.give_up()

    def scan_tail(self) -> None:
        """Read only the times of the next records, if nothing else reads what follows the newest closed bucket. If the
        end of the log can't be reached, ends stay unconfirmed.
        """
        if not self._rule.is_pending:
            return
        options = self._parts.options
        try:
            records = self._parts.log.poll(options.poll_records, options.poll_timeout_s)
            self._rule.read(records.times)
            self._ends.request(records.position, _ENDS_INTERVAL_S)
            snapshot = self._ends.take()
        except LogUnreachable as error:
            self._log_warning.about(error)
            self.give_up()
            return
        if snapshot is not None:
            self._horizon.add(snapshot, records.position)
        self._horizon.read_to(records.position)
        self.check()
        if self._horizon.now().transaction is not None:
            self.give_up()

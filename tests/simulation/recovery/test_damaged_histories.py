"""Random histories in which rows of index buckets are lost, and the loss is accepted where Kafka no longer has the
records. The remaining data is consistent.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from simulation.recovery.test_verified_histories import ShortLivedHistory

from strandline.recovery.offset_policy import Accepted
from support.verifying import assert_world_sound

pytestmark = pytest.mark.simulation


class DamagedHistory(ShortLivedHistory):
    """Keys are purged after hours, and records and rows of index buckets are lost."""

    def recover(self) -> None:
        if self.world.shard is None:
            accepted = Accepted(loss_to=self.world.log.ends().start, index_loss=True)
            self.world.start(accepted=accepted)

    def another_retention(self) -> None:  # type: ignore[override]
        """Not in this history: rewritten buckets would outlive their cuts."""

    @rule(place=st.integers(0, 30), forgets=st.booleans())
    def a_row_of_an_index_bucket_is_lost(self, place: int, *, forgets: bool) -> None:
        """In some cases together with all records in Kafka."""
        self.world.crash()
        with self.world.sqlite._connections.writing() as connection:
            rows = connection.execute("SELECT rowid FROM index_buckets ORDER BY bucket, attempt, seq").fetchall()
            if rows:
                connection.execute("DELETE FROM index_buckets WHERE rowid = ?", rows[place % len(rows)])
        if forgets:
            self.world.log.delete_before(self.world.log.ends().last_stable)
        self.both_read()
        self.world.settle()
        assert_world_sound(self.world)


TestDamagedHistory = DamagedHistory.TestCase
TestDamagedHistory.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)

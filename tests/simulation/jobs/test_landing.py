"""Landing parts with workers that crash, stall and take over from each other, at any step of any chunk."""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from strandline.clock import ManualClock
from strandline.errors import StrandlineError
from strandline.jobs.landing.memory_part_log import MemoryCluster, MemoryTransactions
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.landing.progress import Landed, PartIdentity, Progress
from support.part_logs import Killed, records_of, samples_by_chunk

pytestmark = pytest.mark.simulation

PART = PartIdentity("metrics", "import", 1)
CHUNKS = 4
STEPS = ("hold", "committed", "partitions", "begin", "send", "send_offset", "commit", "abort")
DAY_S = 24 * 3600
RECORDS = {(chunk, count): records_of(chunk, 3, count) for chunk in range(CHUNKS) for count in range(2, 6)}


@dataclass
class History:
    """One run, whose events are drawn from the seed."""

    random: random.Random
    clock: ManualClock = field(default_factory=ManualClock)
    depth: int = 0
    without_faults: bool = False

    def __post_init__(self) -> None:
        self.cluster = MemoryCluster(self.clock, 2)
        self.begun_ms = self.clock.now_ms()

    def step(self) -> None:
        """An event may occur before or after any request: another worker may even do all of its work in between."""
        if self.without_faults:
            return
        match self.random.randrange(40):
            case 0:
                raise Killed
            case 1:
                self.clock.sleep(self.random.choice([0.1, 5, 11, 30]))
            case 2:
                self.cluster.reachable = not self.cluster.reachable
            case 3:
                self.cluster.lost_answers = 1
            case 4:
                self.cluster.unstable_reads = self.random.randrange(4)
            case 5:
                self.cluster.grow(min(5, len(self.cluster.partitions) + 1))
            case 6 | 7 | 8 if self.depth < 3:
                self.work()

    def work(self) -> bool:
        """Run a worker that has a lease of the part, or assumes so. Returns whether it has found the part landed
        completely.
        """
        self.depth += 1
        try:
            return self._work(PartLog(SteppedTransactions(self), self.clock))
        except (StrandlineError, Killed):
            return False
        finally:
            self.depth -= 1

    def _work(self, log: PartLog) -> bool:
        deadline = self.clock.monotonic() + 60
        landed = log.begin(PART, first_begun_ms=self.begun_ms, deadline=deadline)
        assert landed == (Landed(landed.chunks, behind(landed.chunks)) if landed.chunks else Landed())
        for chunk in range(landed.chunks, CHUNKS):
            partitions = log.partitions(deadline)
            log.land(chunk, RECORDS[chunk, partitions], behind(chunk + 1), deadline)
        return True


class SteppedTransactions:
    """Transactions in memory, with a step of the history around each request."""

    def __init__(self, history: History) -> None:
        self._history, self._inner = history, MemoryTransactions(history.cluster)

    def __getattr__(self, name: str) -> object:
        call = getattr(self._inner, name)
        if name not in STEPS:
            return call

        def stepped(*arguments: object) -> object:
            self._history.step()
            result = call(*arguments)
            self._history.step()
            return result

        return stepped


def behind(chunks: int) -> Progress:
    return Progress(100 * chunks, (3 * chunks,))


@pytest.mark.parametrize("first", range(0, 2_000, 250))
def test_each_chunk_lands_once_despite_crashes_and_stalls_of_its_workers(first: int) -> None:
    for seed in range(first, first + 250):
        history = History(random.Random(seed))  # noqa: S311 - the same history for a seed
        for _ in range(6):
            history.work()
        history.without_faults, history.cluster.reachable, history.cluster.lost_answers = True, True, 0
        assert history.work(), f"seed {seed}"
        found = samples_by_chunk(
            (partition, record.value, dict(record.headers))
            for partition, records in history.cluster.read().items()
            for record in records
        )
        assert found == Counter({(PART.job, PART.part, chunk): 3 for chunk in range(CHUNKS)}), f"seed {seed}"


def test_a_part_is_refused_rather_than_duplicated_once_its_offset_may_have_expired() -> None:
    for seed in range(100):
        history = History(random.Random(seed))  # noqa: S311 - the same history for a seed
        for _ in range(3):
            history.work()
        before = [len(records) for records in history.cluster.partitions]
        history.without_faults, history.cluster.reachable = True, True
        history.clock.sleep(8 * DAY_S)
        assert not history.work()
        assert [len(records) for records in history.cluster.partitions] == before

"""Seeded histories: crashes and stalls in any call to the store, wrong clocks, outages, takeovers and losses.

`tests/strandline-sim` runs any number of other seeds, and shows the smallest history that fails.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.seeded.running import SHARDS

pytestmark = pytest.mark.simulation

SEEDS, BATCH = 2_000, 100
# What a run over all seeds must have met; each is an event that the properties were checked around.
MET = {
    "answer with a warning",
    "complete answer",
    "crash at work",
    "crash in a start",
    "hour ready",
    "loss accepted",
    "rewound",
    "stalled in a call",
    "start refused: StillOwned",
    "started, catching-up",
    "started, replaying",
    "wave of jobs",
    "zombie fenced",
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with SHARDS.simulations() as made:
        yield made


@pytest.fixture(scope="module")
def events() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_no_history_loses_doubles_or_hides_anything(first: int, folder: Path, events: Counter[str]) -> None:
    failed = [failure for _, failure in SHARDS.failures(first, BATCH, folder, events) if failure is not None]
    assert not failed, f"{len(failed)} seeds fail, the first of them:\n{SHARDS.smallest(failed[0], folder)}"


def test_the_histories_meet_what_they_are_for(events: Counter[str]) -> None:
    assert set(events) >= MET, "something that used to happen in these histories no longer does"


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(2_004_933, id="Kafka deletes more while a start that accepts a loss waits"),
        pytest.param(2_024_621, id="a group's row outlives the cut that records a loss"),
        pytest.param(4_039_049, id="a group's row expires before the cut of its bucket"),
        pytest.param(4_040_011, id="a stalled shard reads a record ahead of its time, and others of its hour after it"),
        pytest.param(6_006_260, id="rows written while the server's clock was behind expire first"),
        pytest.param(7_004_284, id="the records of a fenced owner are deleted"),
        pytest.param(7_060_066, id="a purged key's record expires before a bucket in which the key was active"),
        pytest.param(7_068_721, id="Kafka deletes records while a start reads their times"),
        pytest.param(4_043_441, id="a start reads a record ahead of its time, and others of its hour after it"),
    ],
)
def test_a_history_that_failed_once_passes(seed: int, folder: Path) -> None:
    assert SHARDS.failure_of(SHARDS.history_of(seed), folder, Counter()) is None


def test_a_history_runs_the_same_way_each_time(folder: Path) -> None:
    for seed in (3, 7):
        first, second = Counter[str](), Counter[str]()
        assert SHARDS.failure_of(SHARDS.history_of(seed), folder, first) is None
        assert SHARDS.failure_of(SHARDS.history_of(seed), folder, second) is None
        assert first == second

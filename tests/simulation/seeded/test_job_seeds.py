"""Seeded histories of bulk jobs: crashes and stalls in any call to store, brokers and files, several workers at once.

`tests/strandline-sim --suite jobs` runs any number of other seeds, and shows the smallest history that fails.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.seeded_jobs.running import JOBS

pytestmark = pytest.mark.simulation

SEEDS, BATCH = 500, 100
# What a run over all seeds must have met; each is an event that the properties were checked around.
MET = {
    "broken to running",
    "clock ahead",
    "completing to done",
    "crash",
    "days",
    "failed to running",
    "file changed",
    "machine suspended",
    "paused to running",
    "refused records",
    "running to broken",
    "running to cancelled",
    "running to failed",
    "running to paused",
    "zombie woke",
}


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with JOBS.simulations() as made:
        yield made


@pytest.fixture(scope="module")
def events() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_no_history_loses_or_doubles_a_sample_or_lands_one_too_late(
    first: int, folder: Path, events: Counter[str]
) -> None:
    failed = [failure for _, failure in JOBS.failures(first, BATCH, folder, events) if failure is not None]
    assert not failed, f"{len(failed)} seeds fail, the first of them:\n{JOBS.smallest(failed[0], folder)}"


def test_the_histories_meet_what_they_are_for(events: Counter[str]) -> None:
    assert set(events) >= MET, "something that used to happen in these histories no longer does"


def test_a_history_runs_the_same_way_each_time(folder: Path) -> None:
    for seed in (3, 7):
        first, second = Counter[str](), Counter[str]()
        assert JOBS.failure_of(JOBS.history_of(seed), folder, first) is None
        assert JOBS.failure_of(JOBS.history_of(seed), folder, second) is None
        assert first == second

"""Runs histories of jobs, and reports failures."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.seeded.suites import Failure, Suite, failure_in, without_logs
from support.seeded_jobs.history import JobHistory, history_of, run, without
from support.seeded_jobs.simulation import Simulation


@contextmanager
def simulations() -> Iterator[Path]:
    """A context without logging. No folder is needed."""
    with without_logs():
        yield Path()


def failure_of(history: JobHistory, _folder: Path, events: Counter[str] | None = None) -> Failure[JobHistory] | None:
    """The failure of a history; None if it passes. Counts its events in `events`."""
    simulation = Simulation()
    failure = failure_in(history, lambda at: run(history, simulation, at))
    if events is not None:
        events.update(simulation.events)
    return failure


JOBS = Suite(simulations, history_of, failure_of, without)

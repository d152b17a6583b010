"""Running the histories of jobs, and telling how one failed."""

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from support.seeded.suites import Failure, Step, Suite, failed
from support.seeded_jobs.history import JobHistory, history_of, run, without
from support.seeded_jobs.simulation import Simulation


@contextmanager
def simulations() -> Iterator[Path]:
    """Meanwhile nothing is logged. No folder is needed."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield Path()
    finally:
        structlog.configure(**before)


def failure_of(history: JobHistory, _folder: Path, events: Counter[str] | None = None) -> Failure[JobHistory] | None:
    """How a history fails; None if it does not. What happens in it is counted in `events`."""
    simulation, at = Simulation(), list[Step]()
    try:
        run(history, simulation, at.append)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001 - anything that is raised is a failure
        return failed(history, error, at)
    finally:
        if events is not None:
            events.update(simulation.events)
    return None


JOBS = Suite(simulations, history_of, failure_of, without)

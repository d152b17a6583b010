"""Runs the histories of shards, and describes how one failed."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from unittest.mock import patch

from strandline.recovery.lease_keeper import LeaseKeeper
from support.seeded.history import History, history_of, run, without
from support.seeded.simulation import Simulation
from support.seeded.suites import Failure, Suite, failure_in, without_logs

_MEMORY = Path("/dev/shm")


@contextmanager
def simulations() -> Iterator[Path]:
    """A folder to run histories in. In this context, nothing is logged, ids are seeded, and no thread renews leases."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=_MEMORY if _MEMORY.is_dir() else None))
    try:
        # A stalled worker does not renew, and any other worker finishes within one moment of simulated time.
        with without_logs(), patch.object(LeaseKeeper, "keeping", lambda _keeper: nullcontext()):
            yield folder
    finally:
        shutil.rmtree(folder)


def failure_of(history: History, folder: Path, events: Counter[str] | None = None) -> Failure[History] | None:
    """How a history fails; None if it does not. Its events are counted in `events`."""
    ids = Random(history.seed)  # noqa: S311
    home = folder / "run"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    simulation = Simulation(home, groups=history.groups, seal_rows=history.seal_rows, loses=history.loses)
    with patch("secrets.token_hex", lambda length: f"{ids.getrandbits(8 * length):0{2 * length}x}"):
        failure = failure_in(history, lambda at: run(history, simulation, at))
    if events is not None:
        events.update(simulation.events)
    return failure


SHARDS = Suite(simulations, history_of, failure_of, without)

"""Running the histories of shards, and telling how one failed."""

import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from unittest.mock import patch

import structlog

from strandline.recovery.lease_keeper import LeaseKeeper
from support.seeded.history import History, history_of, run, without
from support.seeded.simulation import Simulation
from support.seeded.suites import Failure, Step, Suite, failed

_MEMORY = Path("/dev/shm")


@contextmanager
def simulations() -> Iterator[Path]:
    """A folder to run histories in. Meanwhile nothing is logged, ids are seeded, and no thread renews leases."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-", dir=_MEMORY if _MEMORY.is_dir() else None))
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        # A stalled worker renews nothing, and any other is done within one moment of simulated time.
        with patch.object(LeaseKeeper, "keeping", lambda _keeper: nullcontext()):
            yield folder
    finally:
        structlog.configure(**before)
        shutil.rmtree(folder)


def failure_of(history: History, folder: Path, events: Counter[str] | None = None) -> Failure[History] | None:
    """How a history fails; None if it does not. What happens in it is counted in `events`."""
    ids = Random(history.seed)  # noqa: S311
    home = folder / "run"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    simulation = Simulation(home, groups=history.groups, seal_rows=history.seal_rows, loses=history.loses)
    at: list[Step] = []
    with patch("secrets.token_hex", lambda length: f"{ids.getrandbits(8 * length):0{2 * length}x}"):
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


SHARDS = Suite(simulations, history_of, failure_of, without)

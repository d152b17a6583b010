"""Running seeds, and making a history that fails smaller."""

import logging
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

import structlog

from strandline.recovery.lease_keeper import LeaseKeeper
from support.seeded.history import History, Step, history_of, run, without
from support.seeded.simulation import Simulation

_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Failure:
    """How a history failed. `kind` tells failures apart without their numbers."""

    history: History
    kind: str
    text: str

    def __str__(self) -> str:
        steps = "\n".join(f"  {place:3} {step.name} ({step.seed})" for place, step in enumerate(self.history.steps))
        told = self.history
        return (
            f"seed {told.seed}: {told.groups} groups, {told.seal_rows} rows a page, loses={told.loses},"
            f" wrong clock: {told.liar}\n{steps}\n{self.text}"
        )


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


def failure_of(history: History, folder: Path, events: Counter[str] | None = None) -> Failure | None:
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
            return Failure(history, type(error).__name__ + ":" + _place(error), _told(error, at))
        finally:
            if events is not None:
                events.update(simulation.events)
    return None


def smallest(failure: Failure, folder: Path, tries: int = 400) -> Failure:
    """The same failure with as few steps as are found to be enough."""
    size = max(1, len(failure.history.steps) // 2)
    while size and tries:
        place = 1
        while place < len(failure.history.steps) and tries:
            tries -= 1
            fewer = without(failure.history, range(place, place + size))
            again = failure_of(fewer, folder)
            if again is not None and again.kind == failure.kind:
                failure = again
            else:
                place += size
        size //= 2
    return failure


def failures(
    first: int, count: int, folder: Path, events: Counter[str] | None = None
) -> Iterator[tuple[int, Failure | None]]:
    """Run seeds one after the other."""
    for seed in range(first, first + count):
        yield seed, failure_of(history_of(seed), folder, events)


def _place(error: BaseException) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}:{frame.name}"


def _told(error: BaseException, at: list[Step]) -> str:
    trace = "".join(traceback.format_exception(error)[-12:])
    return f"failed in step {len(at) - 1} ({at[-1].name if at else 'none'}) or behind it: {error}\n{trace}"

"""A suite of seeded histories: how a seed becomes a history, how a history fails, and how a failure is minimized."""

import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog


@dataclass(frozen=True)
class Step:
    """One step of a history; `seed` determines everything random in it."""

    name: str
    seed: int


class AnyHistory(Protocol):
    """The history of a seed."""

    @property
    def title(self) -> str: ...

    @property
    def steps(self) -> tuple[Step, ...]: ...


H = TypeVar("H", bound=AnyHistory)


@dataclass(frozen=True)
class Failure(Generic[H]):
    """How a history failed. `kind` identifies failures regardless of their numbers."""

    history: H
    kind: str
    text: str

    def __str__(self) -> str:
        steps = "\n".join(f"  {place:3} {step.name} ({step.seed})" for place, step in enumerate(self.history.steps))
        return f"{self.history.title}\n{steps}\n{self.text}"


@dataclass(frozen=True)
class Suite(Generic[H]):
    """`simulations` creates a folder to run histories in. `failure_of` counts events, if it gets a counter."""

    simulations: Callable[[], AbstractContextManager[Path]]
    history_of: Callable[[int], H]
    failure_of: Callable[[H, Path, Counter[str] | None], Failure[H] | None]
    without: Callable[[H, Sequence[int]], H]

    def failures(
        self, first: int, count: int, folder: Path, events: Counter[str] | None = None
    ) -> Iterator[tuple[int, Failure[H] | None]]:
        """Run seeds one after the other."""
        for seed in range(first, first + count):
            yield seed, self.failure_of(self.history_of(seed), folder, events)

    def smallest(self, failure: Failure[H], folder: Path, tries: int = 400) -> Failure[H]:
        """The same failure with as few steps as found."""
        size = max(1, len(failure.history.steps) // 2)
        while size and tries:
            place = 1
            while place < len(failure.history.steps) and tries:
                tries -= 1
                fewer = self.without(failure.history, range(place, place + size))
                again = self.failure_of(fewer, folder, None)
                if again is not None and again.kind == failure.kind:
                    failure = again
                else:
                    place += size
            size //= 2
        return failure


@contextmanager
def without_logs() -> Iterator[None]:
    """A context in which nothing is logged."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)


def failure_in(history: H, run: Callable[[Callable[[Step], None]], None]) -> Failure[H] | None:
    """How a history fails; None if it does not. `run` runs it, and calls its argument before each step."""
    at: list[Step] = []
    try:
        run(at.append)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001 - anything that is raised is a failure
        return failed(history, error, at)
    return None


def failed(history: H, error: BaseException, at: Sequence[Step]) -> Failure[H]:
    """The failure of a history whose last steps are `at`."""
    trace = "".join(traceback.format_exception(error)[-12:])
    text = f"failed in step {len(at) - 1} ({at[-1].name if at else 'none'}) or behind it: {error}\n{trace}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Failure(history, f"{type(error).__name__}:{Path(frame.filename).name}:{frame.name}", text)

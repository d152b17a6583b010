"""Histories: the steps that a seed determines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from strandline.errors import Retryable
from strandline.node.shard.options import ReplayMode
from strandline.node.shard.status import Phase
from support.seeded.checking import check_answer, check_hours, check_settled
from support.seeded.dataset import HOUR, MINUTE
from support.seeded.hooked_store import Fault, Kind
from support.seeded.ledger import Sample, body_of
from support.seeded.rewinding import rewind_shard
from support.seeded.simulation import MACHINES, Simulation
from support.seeded.suites import Step
from support.seeded.violations import Crash

_METRICS = ("m0", "m1", "m2", "m3", "m4")
_HOSTS = ("node-a", "node-b")
# The offset of a wrong clock: from just above the tolerance to half a year.
_ERRORS = (2 * MINUTE, 20 * MINUTE, HOUR, 8 * HOUR, 24 * 30 * HOUR, 24 * 200 * HOUR)


@dataclass(frozen=True)
class History:
    """The history of a seed. At most one machine's clock is ever wrong: `wrong_clock`."""

    seed: int
    groups: int
    seal_rows: int
    loses: bool
    wrong_clock: str | None
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        return (
            f"seed {self.seed}: {self.groups} groups, {self.seal_rows} rows a page, loses={self.loses}, "
            f"wrong clock: {self.wrong_clock}"
        )


def history_of(seed: int) -> History:
    """The history of a seed."""
    random = Random(seed)  # noqa: S311
    names, weights = zip(*((name, weight) for name, (_, weight) in STEPS.items()), strict=True)
    steps = [Step(name, random.getrandbits(32)) for name in random.choices(names, weights, k=random.randint(12, 28))]
    return History(
        seed,
        groups=random.choice((1, 2, 3)),
        seal_rows=random.choice((3, 1000)),
        loses=random.random() < 0.15,
        wrong_clock=random.choice((None, *MACHINES)),
        steps=(Step("start", random.getrandbits(32)), *steps),
    )


def run(history: History, simulation: Simulation, watch: Callable[[Step], None] = lambda _step: None) -> None:
    """Run a history, and check the properties. Raises `Violation`, or any error of the code under test."""
    for step in history.steps:
        watch(step)
        simulation.random = Random(step.seed)  # noqa: S311
        STEPS[step.name][0](simulation, history)
    settle(simulation)


def settle(simulation: Simulation) -> None:
    """At the end, without faults for a while, everything must be there."""
    simulation.random = Random(0)  # noqa: S311
    simulation.repair()
    simulation.client.send_again(simulation.random)
    one = next(one for one in simulation.live if one.status.phase is Phase.ACTIVE)
    # Read what has arrived meanwhile.
    simulation.turn(one, most_reads=1000)
    while one.shard is not None and one.shard.step():
        pass
    check_settled(simulation, one)


# The steps.


def _samples(simulation: Simulation) -> list[Sample]:
    """Some samples, most of them current, some late."""
    random, now = simulation.random, simulation.time.now_ms
    found = []
    for _ in range(random.randint(1, 6)):
        ago = random.choice((0, 0, 0, 0, 1, 30, 61, 100)) * MINUTE
        name = random.choice(_METRICS), random.choice("ab")
        found.append(Sample(name, now - ago - random.randint(0, 3), float(random.randint(0, 9))))
    return found


def _write(simulation: Simulation, _history: History) -> None:
    for _ in range(simulation.random.randint(1, 3)):
        simulation.client.write(_samples(simulation), simulation.random)
        simulation.time.advance(simulation.random.choice((0, 1_000, 30_000)))


def _write_without_gateway(simulation: Simulation, _history: History) -> None:
    """A producer without a gateway: possibly in a transaction, or with a record without a time."""
    random, samples = simulation.random, _samples(simulation)
    if simulation.is_log_away:
        return
    kind = random.random()
    if simulation.ledger.open is not None:
        simulation.ledger.end(commit=random.random() < 0.6)
    elif kind < 0.4:
        simulation.ledger.begin(samples)
    else:
        simulation.ledger.append(body_of(samples), samples, times_checked=False, timed=kind < 0.9)


def _pass_minutes(simulation: Simulation, _history: History) -> None:
    simulation.pass_time(simulation.random.choice((1, 5, 15, 30)) * MINUTE)


def _pass_hours(simulation: Simulation, _history: History) -> None:
    """Let hours pass, with occasional writes."""

    def between() -> None:
        if simulation.random.random() < 0.3:
            simulation.client.write(_samples(simulation), simulation.random)

    simulation.pass_time(simulation.random.choice((1, 1, 2, 4)) * HOUR, between=between)


def _start(simulation: Simulation, _history: History) -> None:
    random = simulation.random
    fault = Fault(random.choice((Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.STALL)), random.randint(1, 25))
    simulation.start(
        random.choice(_HOSTS),
        mode=random.choice(list(ReplayMode)),
        fault=fault if random.random() < 0.2 else None,
    )


def _recover_run(simulation: Simulation, _history: History) -> None:
    """`recover run`: catch up and stop."""
    simulation.start(simulation.random.choice(_HOSTS), mode=ReplayMode.SPARK, reads_tail=False)


def _crash(simulation: Simulation, _history: History) -> None:
    for one in list(simulation.live):
        simulation.kill(one)


def _stop(simulation: Simulation, _history: History) -> None:
    for one in list(simulation.live):
        simulation.stop(one)


def _restart(simulation: Simulation, history: History) -> None:
    _crash(simulation, history)
    _start(simulation, history)


def _down(simulation: Simulation, history: History) -> None:
    """Nothing runs for hours, while clients write; then everything starts again."""
    _crash(simulation, history)
    for _ in range(simulation.random.randint(1, 4)):
        simulation.client.write(_samples(simulation), simulation.random)
        simulation.time.advance(simulation.random.choice((20 * MINUTE, HOUR)))
        simulation.operate()
    _start(simulation, history)


def _arm_fault(simulation: Simulation, _history: History) -> None:
    """Arm a fault for one of the next calls to the store."""
    if simulation.live:
        fault = Fault(simulation.random.choice(list(Kind)), simulation.random.randint(1, 15))
        simulation.random.choice(simulation.live).store.fault = fault


def _work(simulation: Simulation, _history: History) -> None:
    random = simulation.random
    fault = Fault(random.choice(list(Kind)), random.randint(1, 20)) if random.random() < 0.6 else None
    simulation.work(random.randint(1, 4), fault)


def _rewind(simulation: Simulation, history: History) -> None:
    """Stop, rewind and restart; the rewind may crash in the middle."""
    random = simulation.random
    _stop(simulation, history)
    kinds = (Kind.CRASH_BEFORE, Kind.CRASH_AFTER, Kind.LOSE_ANSWER, Kind.STALL)
    fault = Fault(random.choice(kinds), random.randint(1, 8)) if random.random() < 0.4 else None
    rewind_shard(simulation, random.choice(_HOSTS), random.randint(1, 4), fault)
    _start(simulation, history)


def _store_away(simulation: Simulation, _history: History) -> None:
    simulation.is_store_away = True
    simulation.pass_time(simulation.random.choice((5, 40, 130)) * MINUTE)
    simulation.is_store_away = False


def _log_away(simulation: Simulation, _history: History) -> None:
    simulation.set_log_away(away=True)
    simulation.pass_time(simulation.random.choice((5, 40, 130)) * MINUTE)
    simulation.set_log_away(away=False)


def _wrong_clock(simulation: Simulation, history: History) -> None:
    """The wrong clock jumps, drifts, stops, or becomes correct."""
    if history.wrong_clock is None:
        return
    random, clock = simulation.random, simulation.clocks[history.wrong_clock]
    error = random.choice(_ERRORS) * random.choice((-1, 1))
    if not simulation.model.cuts:
        # A first start by a clock that is months behind creates thousands of empty buckets, which is right but slow.
        error = max(error, -8 * HOUR)
    kind = random.random()
    if kind < 0.3:
        clock.be_right()
    elif kind < 0.8:
        clock.be_wrong(error)
    else:
        clock.be_wrong(random.choice((0, error)), rate=random.choice((0.0, 0.5, 2.0)))


def _query(simulation: Simulation, _history: History) -> None:
    if simulation.live:
        check_hours(simulation, simulation.random.choice(_HOSTS))
    for one in list(simulation.live):
        try:
            check_answer(simulation, one)
        except Crash:
            simulation.kill(one)
        except Retryable:
            pass  # An error is a permitted answer.


def _delete(simulation: Simulation, _history: History) -> None:
    simulation.delete_old_records()


def _lose_copy(simulation: Simulation, _history: History) -> None:
    simulation.copies[simulation.random.choice(_HOSTS)].discard()


STEPS: dict[str, tuple[Callable[[Simulation, History], None], float]] = {
    "write": (_write, 8),
    "write without a gateway": (_write_without_gateway, 2),
    "pass minutes": (_pass_minutes, 4),
    "pass hours": (_pass_hours, 4),
    "start": (_start, 4),
    "recover run": (_recover_run, 0.5),
    "crash": (_crash, 1.5),
    "stop": (_stop, 1),
    "restart": (_restart, 1.5),
    "down": (_down, 2),
    "arm a fault": (_arm_fault, 3),
    "work": (_work, 1),
    "rewind": (_rewind, 0.8),
    "store away": (_store_away, 0.7),
    "log away": (_log_away, 0.7),
    "wrong clock": (_wrong_clock, 3),
    "query": (_query, 2),
    "delete": (_delete, 2),
    "lose copy": (_lose_copy, 0.7),
}
"""The possible steps, with their weights."""


def without(history: History, places: Sequence[int]) -> History:
    """The history without some of its steps."""
    left = tuple(step for place, step in enumerate(history.steps) if place not in places)
    return History(history.seed, history.groups, history.seal_rows, history.loses, history.wrong_clock, left)

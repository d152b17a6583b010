"""Histories of jobs: lists of steps, generated from a seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from strandline.jobs.transitions import ENDED
from strandline.store.bulk_jobs import BulkJob, BulkJobState, Wanted
from support.seeded.suites import Step
from support.seeded_jobs.model import Row
from support.seeded_jobs.scheduling import Fault, Kind, Process
from support.seeded_jobs.simulation import DAY_MS, HOSTS, START_MS, Simulation

_HOUR_MS = 3_600_000
_MAX_PARTITIONS = 5
_ROUNDS = 60


@dataclass(frozen=True)
class JobHistory:
    """A generated history: the number of rows of each job, the sizes of parts and chunks, which rows are bad, and
    steps.
    """

    seed: int
    rows: tuple[int, ...]
    bad_every: int
    part_bytes: int
    chunk_bytes: int
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        return (
            f"seed {self.seed}: jobs of {self.rows} rows, every {self.bad_every}th bad, parts of {self.part_bytes} "
            f"bytes, chunks of {self.chunk_bytes}"
        )


def history_of(seed: int) -> JobHistory:
    """The history of a seed."""
    random = Random(seed)  # noqa: S311
    names, weights = zip(*((name, weight) for name, (_, weight) in STEPS.items()), strict=True)
    steps = [Step(name, random.getrandbits(32)) for name in random.choices(names, weights, k=random.randint(6, 20))]
    return JobHistory(
        seed,
        rows=tuple(random.randint(0, 24) for _ in range(random.choice((1, 1, 1, 2)))),
        bad_every=random.choice((1_000, 1_000, 19, 7, 2)),
        part_bytes=random.choice((40, 130, 200, 600)),
        chunk_bytes=random.choice((1, 60, 100, 1_000)),
        steps=(Step("start a worker", random.getrandbits(32)), *steps),
    )


def without(history: JobHistory, indices: Sequence[int]) -> JobHistory:
    """The history without some of its steps."""
    kept = tuple(step for index, step in enumerate(history.steps) if index not in indices)
    return replace(history, steps=kept)


def run(history: JobHistory, simulation: Simulation, watch: Callable[[Step], None] = lambda _step: None) -> None:
    """Run a history and check the invariants. Raises `Violation`, and the errors of the code under test."""
    with simulation.in_place():
        for number, rows in enumerate(history.rows):
            made = [
                Row(START_MS + row, float(row), row % history.bad_every == history.bad_every - 1) for row in range(rows)
            ]
            simulation.plan(f"job-{number}", made, history.part_bytes, history.chunk_bytes)
        for step in history.steps:
            watch(step)
            simulation.random = Random(step.seed)  # noqa: S311
            STEPS[step.name][0](simulation)
        settle(simulation)


def settle(simulation: Simulation) -> None:
    """Repair everything. Each job must then end, and no sample may be lost, duplicated, or land too late."""
    simulation.random, simulation.scheduler.stops = Random(0), False  # noqa: S311
    _put_back(simulation)
    _repair(simulation)
    for process in simulation.scheduler.processes:
        _wake(process)
    board = simulation.board()
    for _ in range(_ROUNDS):
        simulation.scheduler.run(200)
        waiting = [job for job in board.jobs() if not _is_final(job)]
        if not waiting:
            break
        for job in waiting:
            if job.state in (BulkJobState.PAUSED, BulkJobState.BROKEN, BulkJobState.FAILED) and not job.wanted:
                simulation.start_resume("c", job.job)
        simulation.scheduler.run(20)
        simulation.start_worker("c")
        simulation.scheduler.pass_time(60)
    # Processes that are still stalled continue now, and must do no harm.
    simulation.scheduler.run(2_000)
    for job in board.jobs():
        simulation.models[job.job].check_settled(job, board.parts(job), simulation.landed(job.job)[0])


def _is_final(job: BulkJob) -> bool:
    return job.state in ENDED and (job.state is not BulkJobState.FAILED or "offsets.retention" in job.reason)


# Steps.


def _start_worker(simulation: Simulation) -> None:
    simulation.start_worker(simulation.random.choice(HOSTS))
    simulation.scheduler.run(simulation.random.choice((1, 5, 20)))


def _run(simulation: Simulation) -> None:
    simulation.scheduler.run(simulation.random.choice((3, 15, 60)))
    for name, model in simulation.models.items():
        model.check_landed(simulation.landed(name)[0])


def _arm_fault(simulation: Simulation) -> None:
    """Inject a fault into one of the next calls of a process."""
    live = simulation.scheduler.live()
    if live:
        random = simulation.random
        random.choice(live).fault = Fault(random.choice(list(Kind)), random.randint(1, 30))
    simulation.scheduler.run(simulation.random.choice((5, 30)))


def _kill(simulation: Simulation) -> None:
    live = simulation.scheduler.live()
    if live:
        simulation.kill(simulation.random.choice(live))


def _suspend(simulation: Simulation) -> None:
    """Suspend a process, or its machine including the monotonic clock."""
    live = simulation.scheduler.live()
    if live:
        process = simulation.random.choice(live)
        process.is_suspended = True
        simulation.happened("crash")
        if simulation.random.random() < 0.6:
            process.clock.suspend()
            simulation.events["machine suspended"] += 1


def _wake_one(simulation: Simulation) -> None:
    asleep = [one for one in simulation.scheduler.processes if one.is_suspended]
    if asleep:
        _wake(simulation.random.choice(asleep))
        simulation.events["zombie woke"] += 1
    simulation.scheduler.run(simulation.random.choice((2, 20)))


def _wake(process: Process) -> None:
    process.is_suspended = False
    process.clock.resume_clock()


def _pass_minutes(simulation: Simulation) -> None:
    simulation.scheduler.pass_time(simulation.random.choice((3, 25, 90, 130, 600)))
    simulation.scheduler.run(simulation.random.choice((0, 10)))


def _pass_days(simulation: Simulation) -> None:
    simulation.happened("days")
    simulation.clock.sleep(simulation.random.choice((1, 3, 6, 8)) * DAY_MS / 1000)
    simulation.scheduler.run(simulation.random.choice((0, 10)))


def _pause(simulation: Simulation) -> None:
    simulation.start_stop(simulation.random.choice(HOSTS), _some_job(simulation), Wanted.PAUSED)
    simulation.scheduler.run(simulation.random.choice((5, 20, 60)))


def _cancel(simulation: Simulation) -> None:
    job = _some_job(simulation)
    simulation.models[job].was.add("cancel")
    simulation.start_stop(simulation.random.choice(HOSTS), job, Wanted.CANCELLED)
    simulation.scheduler.run(simulation.random.choice((5, 20, 60)))


def _resume(simulation: Simulation) -> None:
    """Resume a job, possibly by two operators concurrently, one of which may crash."""
    job = _some_job(simulation)
    for _ in range(simulation.random.choice((1, 1, 2))):
        process = simulation.start_resume(simulation.random.choice(HOSTS), job)
        if simulation.random.random() < 0.3:
            kind = simulation.random.choice((Kind.CRASH_BEFORE, Kind.CRASH_AFTER))
            process.fault = Fault(kind, simulation.random.randint(1, 8))
    simulation.scheduler.run(simulation.random.choice((5, 20)))


def _trouble(simulation: Simulation) -> None:
    """The brokers, the store or the disk do not answer for a while, or the brokers reject everything."""
    cluster = simulation.cluster
    match simulation.random.randrange(5):
        case 0:
            cluster.reachable = False
        case 1:
            cluster.refuses = True
            simulation.happened("refused")
        case 2:
            cluster.refuses_records = True
            simulation.happened("refused records")
        case 3:
            simulation.files.is_away = True
        case _:
            simulation.is_store_away = True
            simulation.happened("crash")
    simulation.scheduler.run(simulation.random.choice((5, 30)))
    simulation.scheduler.pass_time(simulation.random.choice((0, 5, 150)))
    _repair(simulation)


def _odd_answers(simulation: Simulation) -> None:
    simulation.cluster.lost_answers = simulation.random.randrange(3)
    simulation.cluster.unstable_reads = simulation.random.randrange(4)
    simulation.scheduler.run(simulation.random.choice((5, 20)))


def _grow(simulation: Simulation) -> None:
    simulation.cluster.grow(min(_MAX_PARTITIONS, len(simulation.cluster.partitions) + 1))


def _change_file(simulation: Simulation) -> None:
    """Overwrite a file with other samples; its length stays or grows."""
    path = simulation.random.choice(sorted(simulation.contents))
    former = simulation.contents[path]
    header, newline, rows = former.partition(b"\n")
    changed = header + newline + rows.replace(b"host", b"tsoh").replace(b".0", b".5")
    if simulation.random.random() < 0.5:
        changed += b"\n1800000000000,host-0,77.5"
    simulation.files.put(path, changed, simulation.clock.now_ms() + simulation.random.randrange(2))
    simulation.happened("file changed")
    simulation.scheduler.run(simulation.random.choice((5, 30)))


def _put_back(simulation: Simulation) -> None:
    """Restore the original files, with all workers stopped: one that is reading could read both versions."""
    changed = {path for path, content in simulation.contents.items() if simulation.files.contents[path][0] != content}
    if changed:
        for process in simulation.scheduler.live():
            simulation.kill(process)
        simulation.scheduler.run(100)
    for path, content in simulation.contents.items():
        simulation.files.put(path, content, START_MS)


def _wrong_clock(simulation: Simulation) -> None:
    """Set a wrong clock: less than a day behind, which is tolerated, or any time ahead."""
    host = simulation.random.choice(HOSTS)
    offset = simulation.random.choice((0, -20 * _HOUR_MS, 3 * _HOUR_MS, 2 * DAY_MS, 200 * DAY_MS))
    if offset > 0:
        simulation.happened("clock ahead")
    simulation.offsets_ms[host] = offset


def _repair(simulation: Simulation) -> None:
    cluster = simulation.cluster
    cluster.reachable, cluster.refuses, cluster.refuses_records = True, False, False
    cluster.lost_answers = cluster.unstable_reads = 0
    simulation.is_store_away = simulation.files.is_away = False


def _some_job(simulation: Simulation) -> str:
    return simulation.random.choice(sorted(simulation.models))


STEPS: dict[str, tuple[Callable[[Simulation], None], float]] = {
    "start a worker": (_start_worker, 5),
    "run": (_run, 8),
    "arm a fault": (_arm_fault, 6),
    "kill": (_kill, 2),
    "suspend": (_suspend, 4),
    "wake": (_wake_one, 3),
    "pass minutes": (_pass_minutes, 3),
    "pass days": (_pass_days, 0.4),
    "pause": (_pause, 1.5),
    "cancel": (_cancel, 0.7),
    "resume": (_resume, 2),
    "trouble": (_trouble, 2),
    "odd answers": (_odd_answers, 1.5),
    "add a partition": (_grow, 1),
    "change a file": (_change_file, 0.7),
    "put files back": (_put_back, 0.5),
    "wrong clock": (_wrong_clock, 1),
}
"""The steps with their relative frequencies."""

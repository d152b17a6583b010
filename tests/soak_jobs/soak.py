"""A soak test: starts all processes, kills them repeatedly, and counts the results at the end."""

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from uuid import uuid4

import numpy as np

from soak_jobs.imports import SoakedImport
from soak_jobs.load import LightLoad
from soak_jobs.processes import KillTarget, RestartedCommand, descendants, running, working_pids
from soak_jobs.sends import SoakedSend
from soak_jobs.soaked import JobCount, SoakedJob
from soak_jobs.source import METRIC, write_source
from strandline.clock import SystemClock, wait_until
from strandline.errors import Fatal
from strandline.jobs.board import BulkBoard
from strandline.jobs.rate import changed_rate
from strandline.jobs.transitions import ENDED
from strandline.node.bulk.opening import opened_board
from strandline.node.bulk.reports import JobStatus
from strandline.node.demo.programs import Program, ProgramFailed, fetch_data, is_answered
from strandline.node.settings.load import load_settings
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack
from strandline.node.stack.ports import LOOPBACK, free_ports
from strandline.store.bulk_jobs import BulkJob
from support.committed_topic import CommittedTopic

_PARTITIONS = 2
_SERIES = 2_000
# The duration of the job, in seconds per kill, if nothing disturbs it.
_SECONDS_PER_KILL = 8.0
_SECONDS_PER_KILL_ON_SPARK = 16.0
_IN_PROCESS = ("--on", "process")
# Part of the command line of executors' Python processes.
_ON_EXECUTORS = "strandline.spark.worker_daemon"
_START_S = 240.0


class SoakTimeout(Fatal):
    """An expected event did not occur in time."""


@dataclass(frozen=True)
class SoakOptions:
    """`samples` is the number of rows in the file; a send makes one message of each. `max_pause_s` limits the time
    between two kills, and `limit_s` the duration of the test without the start of the servers. With `spark`, one of the
    two workers runs parts on Spark. `seconds_per_kill` is the duration of the undisturbed job per kill. With
    `is_each_once`, each kind of process is killed once, in the order in which they start, and `kills` is ignored.
    """

    seed: int
    kills: int = 30
    samples: int = 2_000_000
    limit_s: float = 1_800.0
    max_pause_s: float = 4.0
    spark: bool = False
    kind: str = "import"
    seconds_per_kill: float = 0.0
    chunk_bytes: str = "128k"
    is_each_once: bool = False


@dataclass(frozen=True)
class SoakReport:
    """The counts of a soak test; `unit` is their unit."""

    kills: Counter[str]
    seconds: float
    unit: str
    count: JobCount
    parts: int
    state: str
    load_acknowledged: int
    load_lost: int

    @property
    def passed(self) -> bool:
        wrong = self.count.lost + self.count.duplicates + self.count.wrong + self.load_lost
        return not wrong and self.count.counts_are_right and self.state == "done"


class Soak:
    """Runs a soak test. `print_line` is called with lines about its progress."""

    def __init__(self, stack: Stack, folder: Path, options: SoakOptions, print_line: Callable[[str], None]) -> None:
        self._stack, self._folder, self._options, self._print_line = stack, folder, options, print_line
        self._clock = SystemClock()
        self._random = random.Random(options.seed)  # noqa: S311 - the same kills for a seed
        self._name = f"soak-{uuid4().hex[:8]}"
        self._node, self._gateway = (f"{LOOPBACK}:{port}" for port in free_ports(2))
        self._settings = write_settings(folder / "soak.toml", self._sections())
        self._topic = CommittedTopic({"bootstrap.servers": stack.kafka_bootstrap}, self._name, _PARTITIONS)
        self._began = self._clock.monotonic()
        # Without the settings of this machine.
        self._environ = {key: value for key, value in os.environ.items() if not key.startswith("STRANDLINE_")}

    def run(self) -> SoakReport:
        """Raises `SoakTimeout`."""
        settings = load_settings(self._settings, {})
        with ExitStack() as opened:
            gateway = self._start_restarted(opened, "gateway", "gateway", "--create-topic", str(_PARTITIONS))
            self._await("the gateway answers", lambda: is_answered(self._gateway, "/-/ready"), _START_S, (gateway,))
            node = self._start_restarted(opened, "node", "node")
            board = opened.enter_context(opened_board(settings, {}, self._clock))
            load = LightLoad(self._gateway, self._clock)
            opened.callback(load.end)
            soaked = self._soaked(node, gateway)
            self._began = self._clock.monotonic()
            rate = ("--rate", str(soaked.records / self._job_duration_s()))
            arguments = soaked.arguments(self._folder)
            first = self._start_restarted(opened, "worker-0", "job", *arguments, *rate, *_IN_PROCESS)

            def planned() -> list[BulkJob]:
                return [job for job in board.jobs() if job.kind == soaked.kind]

            self._await("the job is planned", lambda: bool(planned()), _START_S, ())
            (job,) = planned()
            # After a kill, the next worker joins the job instead of planning one.
            first.next_start(self._starting("worker-0", "job", "work", job.job, *_IN_PROCESS))
            on = ("--on", "spark") if self._options.spark else _IN_PROCESS
            second = self._start_restarted(opened, "worker-1", "job", "work", job.job, *on)
            workers, others = (first, second), (node, gateway)
            targets = self._kill_targets(board, job, workers, node, gateway)
            kills = self._kill(board, job, soaked.topic, targets, (*workers, *others))
            first.command.end()
            board.change(board.job(job.job), lambda job: changed_rate(job, None))
            second.replace(self._starting("worker-1", "job", "work", job.job, *_IN_PROCESS))
            self._await(
                "the job ends", lambda: board.job(job.job).state in ENDED, self._remaining_s(), (second, *others)
            )
            self._await("the node is ready", lambda: is_answered(self._node, "/-/ready"), _START_S, others)
            load.end()
            job = board.job(job.job)
            return self._counted(soaked, JobStatus.of(job, board.parts(job)), load, kills)

    def _soaked(self, *others: RestartedCommand) -> SoakedJob:
        """The job to disturb. Series for a send are imported before, without disturbance."""
        is_import = self._options.kind == "import"
        rows = self._options.samples
        source = write_source(self._folder, rows, _SERIES if is_import else rows, self._clock.now_ms())
        if is_import:
            return SoakedImport(source, self._topic)
        imported = self._starting("import", "job", "import", *source.arguments())()
        self._await("the series are imported", lambda: imported.exit_code is not None, self._remaining_s(), others)
        if imported.exit_code:
            raise imported.ended(f"ended with {imported.exit_code}")

        def are_known() -> bool:
            with suppress(ProgramFailed):
                path = f"/api/v1/label/host/values?match[]={METRIC}"
                return len(fetch_data(self._node, path)) == source.samples
            return False

        self._await("the node knows the series", are_known, self._remaining_s(), others, poll=1.0)
        target = CommittedTopic(self._topic.client, f"{self._name}-messages", _PARTITIONS)
        return SoakedSend(source, target)

    def _kill_targets(
        self,
        board: BulkBoard,
        job: BulkJob,
        workers: Sequence[RestartedCommand],
        node: RestartedCommand,
        gateway: RestartedCommand,
    ) -> list[KillTarget]:
        """The kinds of processes to kill, in the order in which they start. A worker is only killed while it has a
        part, node and gateway at any time including their start, and a driver once it has executors.
        """
        in_process = workers[:1] if self._options.spark else workers

        def executors() -> list[int]:
            return descendants(running(workers[1:]), _ON_EXECUTORS)

        on_spark = [
            KillTarget("Python process of an executor", 3, executors),
            KillTarget("driver", 1, lambda: running(workers[1:]) if executors() else []),
        ]
        return [
            KillTarget("worker", 5, lambda: working_pids(in_process, board.parts(job))),
            KillTarget("gateway", 2, lambda: running([gateway])),
            KillTarget("node", 3, lambda: running([node])),
            *(on_spark if self._options.spark else []),
        ]

    def _job_duration_s(self) -> float:
        """The duration of the undisturbed job: long enough that it does not end before the last kill."""
        options = self._options
        return options.kills * (
            options.seconds_per_kill or (_SECONDS_PER_KILL_ON_SPARK if options.spark else _SECONDS_PER_KILL)
        )

    def _kill(
        self,
        board: BulkBoard,
        job: BulkJob,
        topic: CommittedTopic,
        targets: Sequence[KillTarget],
        commands: Sequence[RestartedCommand],
    ) -> Counter[str]:
        killed, choose = Counter[str](), self._random.choice
        order = targets if self._options.is_each_once else list(islice(self._order(targets), self._options.kills))

        def is_over() -> bool:
            return board.job(job.job).state in ENDED

        for target in order:
            self._wait_until_next_kill(topic, commands)
            self._await(
                f"a {target.name} is killed",
                lambda victim=target: victim.kill_one(choose) or is_over(),
                self._remaining_s(),
                commands,
            )
            if is_over():
                raise SoakTimeout(f"the job ended after {killed.total()} kills", remedy="Raise --samples")
            killed[target.name] += 1
            status = JobStatus.of(job, board.parts(job))
            at_s = self._clock.monotonic() - self._began
            self._print_line(
                f"{at_s:6.1f} s  {killed.total()} of {len(order)} killed, a {target.name}: "
                f"{status.parts_done} of {status.parts} parts done, {topic.ends():,} records in the topic"
            )
        return killed

    def _order(self, targets: Sequence[KillTarget]) -> Iterator[KillTarget]:
        """Like decks of cards: each kind occurs as often as its weight before the deck is shuffled again."""
        order = random.Random(self._options.seed)  # noqa: S311 - independent of other random numbers
        while True:
            deck = [target for target in targets for _ in range(target.weight)]
            order.shuffle(deck)
            yield from deck

    def _wait_until_next_kill(self, topic: CommittedTopic, commands: Sequence[RestartedCommand]) -> None:
        """Wait for a random time. In half of the cases, then wait until new records are in the topic, so that the kill
        is during a transaction or shortly after one.
        """
        until = self._clock.monotonic() + self._random.uniform(0.2, self._options.max_pause_s)
        is_near = self._random.random() < 0.5
        self._await("a moment", lambda: self._clock.monotonic() >= until, 10, commands)
        if is_near:
            before = topic.ends()
            self._await("records come", lambda: topic.ends() > before, self._remaining_s(), commands, poll=0.002)
            self._clock.sleep(self._random.uniform(0, 0.03))

    def _counted(self, soaked: SoakedJob, status: JobStatus, load: LightLoad, kills: Counter[str]) -> SoakReport:
        through_gateway = set(self._topic.samples_of(None).values.astype(np.int64).tolist())
        return SoakReport(
            kills=kills,
            seconds=self._clock.monotonic() - self._began,
            unit=soaked.unit,
            count=soaked.counted(status),
            parts=status.parts,
            state=status.state.value,
            load_acknowledged=len(load.acknowledged),
            load_lost=len(set(load.acknowledged) - through_gateway),
        )

    def _start_restarted(self, opened: ExitStack, name: str, *arguments: str) -> RestartedCommand:
        made = RestartedCommand(name, self._starting(name, *arguments))
        opened.callback(made.kill)
        return made

    def _starting(self, name: str, *arguments: str) -> Callable[[], Program]:
        command = [*arguments, "--config", str(self._settings)]
        return lambda: Program(command, self._folder / f"{name}.log", environ=self._environ)

    def _await(
        self,
        what: str,
        holds: Callable[[], bool],
        timeout: float,
        commands: Sequence[RestartedCommand],
        poll: float = 0.05,
    ) -> None:
        """Wait for a condition, and restart processes that end in the meantime."""

        def check() -> bool:
            for command in commands:
                command.restart_if_ended()
            return holds()

        if not wait_until(check, timeout=timeout, clock=self._clock, poll=poll):
            raise SoakTimeout(
                f"timed out after {timeout:.0f} s waiting until {what}", remedy=f"Look at the logs in {self._folder}"
            )

    def _remaining_s(self) -> float:
        return max(1.0, self._began + self._options.limit_s - self._clock.monotonic())

    def _sections(self) -> dict[str, dict[str, object]]:
        return {
            "dataset": {
                "name": self._name,
                "flush_interval": "10s",
                "grace": "1s",
                "retention": "1d",
                "stale_after": "1h",
                "kafka_retention": "1d",
                "history": "0s",
            },
            "shard": {"data_dir": str(self._folder / "data"), "flush_spread": 0, "java_heap": "128m"},
            "http": {"node_address": self._node, "gateway_address": self._gateway},
            "kafka": {"bootstrap_servers": [self._stack.kafka_bootstrap]},
            "cassandra": {
                "contact_points": [self._stack.cassandra_host],
                "port": self._stack.cassandra_port,
                "keyspace": "soak",
                "keyspace_copies": 1,
            },
            # Many small transactions, and parts that may fail as often as workers are killed.
            "jobs": {
                "part_bytes": "1m",
                "chunk_bytes": self._options.chunk_bytes,
                "part_series": 100,
                "failures_allowed": 100,
            },
        }

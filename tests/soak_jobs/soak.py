"""One soak: everything is started, killed over and over, and counted at the end."""

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
from soak_jobs.processes import Kept, Victim, below, running, working
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
from strandline.node.demo.programs import Program, ProgramFailed, fetched, is_answered
from strandline.node.settings.load import load_settings
from strandline.node.settings.writing import write_settings
from strandline.node.stack import Stack
from strandline.node.stack.ports import LOOPBACK, free_ports
from strandline.store.bulk_jobs import BulkJob
from support.committed_topic import CommittedTopic

_PARTITIONS = 2
_SERIES = 2_000
# In how many seconds for each kill the job would end by itself.
_S_A_KILL = 8.0
_S_A_KILL_ON_SPARK = 16.0
_IN_PROCESS = ("--on", "process")
# What the Python processes of executors are started as.
_ON_EXECUTORS = "strandline.spark.worker_daemon"
_START_S = 240.0


class SoakStuck(Fatal):
    """Something did not happen in time."""


@dataclass(frozen=True)
class SoakOptions:
    """`samples` is how many rows the file has; a send makes a message of each. `longest_pause_s` bounds the time
    between two kills, `limit_s` the whole soak, the servers' start apart. With `spark` one of the two workers runs
    parts on Spark. `s_a_kill` is in how many seconds for each kill the job would end by itself. With `is_each_once`
    each kind of process is killed once, in the order in which they come up, and `kills` does not count.
    """

    seed: int
    kills: int = 30
    samples: int = 2_000_000
    limit_s: float = 1_800.0
    longest_pause_s: float = 4.0
    spark: bool = False
    kind: str = "import"
    s_a_kill: float = 0.0
    chunk_bytes: str = "128k"
    is_each_once: bool = False


@dataclass(frozen=True)
class SoakReport:
    """What was counted, in `unit`."""

    kills: Counter[str]
    seconds: float
    unit: str
    count: JobCount
    parts: int
    state: str
    load_acknowledged: int
    load_lost: int

    @property
    def is_good(self) -> bool:
        wrong = self.count.lost + self.count.doubled + self.count.wrong + self.load_lost
        return not wrong and self.count.counts_are_right and self.state == "done"


class Soak:
    """`tell` gets a line now and then."""

    def __init__(self, stack: Stack, folder: Path, options: SoakOptions, tell: Callable[[str], None]) -> None:
        self._stack, self._folder, self._options, self._tell = stack, folder, options, tell
        self._clock = SystemClock()
        self._random = random.Random(options.seed)  # noqa: S311 - the same kills for a seed
        self._name = f"soak-{uuid4().hex[:8]}"
        self._node, self._gateway = (f"{LOOPBACK}:{port}" for port in free_ports(2))
        self._settings = write_settings(folder / "soak.toml", self._sections())
        self._topic = CommittedTopic({"bootstrap.servers": stack.kafka_bootstrap}, self._name, _PARTITIONS)
        self._began = self._clock.monotonic()
        # Nothing of this machine's own settings.
        self._environ = {key: value for key, value in os.environ.items() if not key.startswith("STRANDLINE_")}

    def run(self) -> SoakReport:
        """Raises `SoakStuck`."""
        settings = load_settings(self._settings, {})
        with ExitStack() as opened:
            gateway = self._kept(opened, "gateway", "gateway", "--create-topic", str(_PARTITIONS))
            self._await("the gateway answers", lambda: is_answered(self._gateway, "/-/ready"), _START_S, (gateway,))
            node = self._kept(opened, "node", "node")
            board = opened.enter_context(opened_board(settings, {}, self._clock))
            load = LightLoad(self._gateway, self._clock)
            opened.callback(load.end)
            soaked = self._soaked(node, gateway)
            self._began = self._clock.monotonic()
            rate = ("--rate", str(soaked.records / self._length_s()))
            arguments = soaked.arguments(self._folder)
            first = self._kept(opened, "worker-0", "job", *arguments, *rate, *_IN_PROCESS)

            def planned() -> list[BulkJob]:
                return [job for job in board.jobs() if job.kind == soaked.kind]

            self._await("the job is planned", lambda: bool(planned()), _START_S, ())
            (job,) = planned()
            # One that is killed is followed by another that joins the job.
            first.next_start(self._starting("worker-0", "job", "work", job.job, *_IN_PROCESS))
            on = ("--on", "spark") if self._options.spark else _IN_PROCESS
            second = self._kept(opened, "worker-1", "job", "work", job.job, *on)
            workers, others = (first, second), (node, gateway)
            victims = self._victims(board, job, workers, node, gateway)
            kills = self._kill(board, job, soaked.topic, victims, (*workers, *others))
            first.command.end()
            board.change(board.job(job.job), lambda one: changed_rate(one, None))
            second.replace(self._starting("worker-1", "job", "work", job.job, *_IN_PROCESS))
            self._await("the job ends", lambda: board.job(job.job).state in ENDED, self._left(), (second, *others))
            self._await("the node is ready", lambda: is_answered(self._node, "/-/ready"), _START_S, others)
            load.end()
            job = board.job(job.job)
            return self._counted(soaked, JobStatus.of(job, board.parts(job)), load, kills)

    def _soaked(self, *others: Kept) -> SoakedJob:
        """What is disturbed. Series that are to be sent are imported before, undisturbed."""
        is_import = self._options.kind == "import"
        rows = self._options.samples
        source = write_source(self._folder, rows, _SERIES if is_import else rows, self._clock.now_ms())
        if is_import:
            return SoakedImport(source, self._topic)
        imported = self._starting("import", "job", "import", *source.arguments())()
        self._await("the series are imported", lambda: imported.exit_code is not None, self._left(), others)
        if imported.exit_code:
            raise imported.ended(f"ended with {imported.exit_code}")

        def are_known() -> bool:
            with suppress(ProgramFailed):
                path = f"/api/v1/label/host/values?match[]={METRIC}"
                return len(fetched(self._node, path)) == source.samples
            return False

        self._await("the node knows the series", are_known, self._left(), others, poll=1.0)
        target = CommittedTopic(self._topic.client, f"{self._name}-messages", _PARTITIONS)
        return SoakedSend(source, target)

    def _victims(
        self, board: BulkBoard, job: BulkJob, workers: Sequence[Kept], node: Kept, gateway: Kept
    ) -> list[Victim]:
        """What may be killed, in the order in which it comes up. A worker only while it has a part; node and gateway at
        any moment, that of their start included; a driver once it has executors.
        """
        in_process = workers[:1] if self._options.spark else workers

        def executors() -> list[int]:
            return below(running(workers[1:]), _ON_EXECUTORS)

        on_spark = [
            Victim("Python process of an executor", 3, executors),
            Victim("driver", 1, lambda: running(workers[1:]) if executors() else []),
        ]
        return [
            Victim("worker", 5, lambda: working(in_process, board.parts(job))),
            Victim("gateway", 2, lambda: running([gateway])),
            Victim("node", 3, lambda: running([node])),
            *(on_spark if self._options.spark else []),
        ]

    def _length_s(self) -> float:
        """In which the job would end by itself: so slow that it does not end before the last kill."""
        options = self._options
        return options.kills * (options.s_a_kill or (_S_A_KILL_ON_SPARK if options.spark else _S_A_KILL))

    def _kill(
        self, board: BulkBoard, job: BulkJob, topic: CommittedTopic, victims: Sequence[Victim], kept: Sequence[Kept]
    ) -> Counter[str]:
        killed, choose = Counter[str](), self._random.choice
        order = victims if self._options.is_each_once else list(islice(self._order(victims), self._options.kills))

        def is_over() -> bool:
            return board.job(job.job).state in ENDED

        for victim in order:
            self._wait_for_a_moment(topic, kept)
            self._await(
                f"a {victim.name} is killed", lambda one=victim: one.kill_one(choose) or is_over(), self._left(), kept
            )
            if is_over():
                raise SoakStuck(f"the job ended after {killed.total()} kills", remedy="Give it more samples")
            killed[victim.name] += 1
            status = JobStatus.of(job, board.parts(job))
            at_s = self._clock.monotonic() - self._began
            self._tell(
                f"{at_s:6.1f} s  {killed.total()} of {len(order)} killed, a {victim.name}: "
                f"{status.parts_done} of {status.parts} parts done, {topic.ends():,} records in the topic"
            )
        return killed

    def _order(self, victims: Sequence[Victim]) -> Iterator[Victim]:
        """As a deck of cards: each kind comes as often as it weighs before the deck is shuffled again."""
        order = random.Random(self._options.seed)  # noqa: S311 - whatever else is drawn
        while True:
            deck = [one for one in victims for _ in range(one.weight)]
            order.shuffle(deck)
            yield from deck

    def _wait_for_a_moment(self, topic: CommittedTopic, kept: Sequence[Kept]) -> None:
        """A random time; in half of all cases then until records come into the topic, so that the kill falls into a
        transaction, or just behind one.
        """
        until = self._clock.monotonic() + self._random.uniform(0.2, self._options.longest_pause_s)
        is_near = self._random.random() < 0.5
        self._await("a moment", lambda: self._clock.monotonic() >= until, 10, kept)
        if is_near:
            before = topic.ends()
            self._await("records come", lambda: topic.ends() > before, self._left(), kept, poll=0.002)
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

    def _kept(self, opened: ExitStack, name: str, *arguments: str) -> Kept:
        made = Kept(name, self._starting(name, *arguments))
        opened.callback(made.kill)
        return made

    def _starting(self, name: str, *arguments: str) -> Callable[[], Program]:
        command = [*arguments, "--config", str(self._settings)]
        return lambda: Program(command, self._folder / f"{name}.log", environ=self._environ)

    def _await(
        self, what: str, holds: Callable[[], bool], timeout: float, kept: Sequence[Kept], poll: float = 0.05
    ) -> None:
        """Wait, and start again what has ended meanwhile."""

        def look() -> bool:
            for one in kept:
                one.restart_if_ended()
            return holds()

        if not wait_until(look, timeout=timeout, clock=self._clock, poll=poll):
            raise SoakStuck(f"not within {timeout:.0f} s: {what}", remedy=f"Look at the logs in {self._folder}")

    def _left(self) -> float:
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
            # Many small transactions, and parts that may lose all of the workers that are killed.
            "jobs": {
                "part_bytes": "1m",
                "chunk_bytes": self._options.chunk_bytes,
                "part_series": 100,
                "failures_allowed": 100,
            },
        }

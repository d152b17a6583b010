"""Imports on the executors of a real Spark, into a real topic. Executors import this module by its name, so the tests'
folder is on their path.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark import SparkContext

from strandline.clock import Clock, SystemClock
from strandline.digest import digest
from strandline.jobs.board import BulkBoard
from strandline.jobs.importing.import_kind import IMPORT, ImportKind
from strandline.jobs.importing.opener import ImportOpener
from strandline.jobs.importing.planning import ImportOptions, plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.job_lifecycle import WorkerRules
from strandline.jobs.landing.kafka_part_log import KafkaTransactions
from strandline.jobs.landing.part_log import PartLog
from strandline.jobs.running import KindOpener
from strandline.jobs.worker import BulkWorker
from strandline.node.stack.ports import LOOPBACK
from strandline.spark.part_listener import PartListener
from strandline.spark.part_runner import SparkLauncher, SparkPartRunner
from strandline.store.bulk_jobs import BulkJob, BulkJobState, BulkPart
from strandline.store.sqlite import open_sqlite_store
from strandline.wire.record_headers import CHUNK_HEADER, JOB_HEADER, PART_HEADER
from support.gateway_topics import GatewayTopic
from support.part_logs import HookedTransactions, committed_records, samples_by_chunk

CLOCK = SystemClock()
MAPPING = {"metric": "cpu", "value": "value", "time": {"column": "time", "unit": "ms"}, "labels": ["host"]}
# Eight parts of about five chunks each.
OPTIONS = ImportOptions(Format.CSV, MAPPING, part_bytes=60_000, chunk_bytes=12_000, max_record=200)
ROWS, BAD_EVERY = 20_000, 1_000
# Constant, so that every test process imports the same file.
FIRST_MS = 1_790_000_000_000
LIFE = 10 * 86_400_000
GRANT_S = 2.0


@dataclass(frozen=True)
class HangingImports:
    """Opens imports. The first process that commits a second chunk writes its pid into a file instead, and waits within
    the open transaction to be killed.
    """

    kafka: Mapping[str, str | int]
    topic: str
    marker: Path

    def __call__(self, clock: Clock) -> ImportKind:
        commits: list[int] = []

        def before_commit() -> None:
            commits.append(1)
            if len(commits) == 2:
                self._die_first()

        def open_log() -> PartLog:
            inner = KafkaTransactions(self.kafka, self.topic, clock)
            return PartLog(HookedTransactions(inner, {"commit": before_commit}, {}), clock)

        return ImportKind(open_log, clock)

    def _die_first(self) -> None:
        part = self.marker.with_name(f"{self.marker.name}-{os.getpid()}")
        part.write_text(str(os.getpid()))
        try:
            os.link(part, self.marker)
        except FileExistsError:
            return
        while True:
            signal.pause()


@dataclass(frozen=True, order=True)
class LandedRecord:
    """A record of a chunk that readers see, with the digest of its bytes."""

    partition: int
    digest: int


class Imports:
    """A file, jobs that import it, and the topic that they import it into."""

    def __init__(self, bootstrap: str, board: BulkBoard, folder: Path) -> None:
        self.topic, self.board, self.folder = GatewayTopic(bootstrap, 2), board, folder
        lines = [
            f"{FIRST_MS + row},host-{row % 50},{'?' if row % BAD_EVERY == BAD_EVERY - 1 else row}"
            for row in range(ROWS)
        ]
        (folder / "data.csv").write_text("\n".join(["time,host,value", *lines]))
        self.opener = ImportOpener(self.topic.client, self.topic.name)

    def planned(self, name: str) -> BulkJob:
        """Plan another job."""
        plan = plan_import([str(self.folder / "data.csv")], OPTIONS)
        spec, parts = plan.spec.to_json(), [part.to_json() for part in plan.parts]
        job = BulkJob("metrics", name, IMPORT, spec, plan.hash, len(parts), LIFE, CLOCK.now_ms())
        self.board.add(job, [BulkPart("metrics", name, at, source, LIFE) for at, source in enumerate(parts)])
        return job

    def worker(self, runner: SparkPartRunner | None = None, stop: Callable[[], bool] = lambda: False) -> BulkWorker:
        """A worker that runs parts with this runner, or in this process."""
        kinds = {IMPORT: self.opener(CLOCK)}
        return BulkWorker(self.board, kinds, CLOCK, "driver", WorkerRules(poll_s=0.2), runner=runner, stop=stop)

    def rows(self, name: str) -> list[BulkPart]:
        """The rows of a job's parts, without the job's name and the workers."""
        parts = self.board.parts(self.board.job(name))
        return [replace(part, job="", worker="", renewals=0) for part in parts]

    def landed(self, name: str) -> dict[tuple[int, int], list[LandedRecord]]:
        """The visible records of each part and chunk of a job."""
        found: dict[tuple[int, int], list[LandedRecord]] = {}
        for partition, value, headers in committed_records(self.topic):
            if headers[JOB_HEADER] == name.encode():
                chunk = int(headers[PART_HEADER]), int(headers[CHUNK_HEADER])
                found.setdefault(chunk, []).append(LandedRecord(partition, digest(value)))
        return {chunk: sorted(records) for chunk, records in sorted(found.items())}

    def samples(self, name: str) -> dict[tuple[int, int], int]:
        """The number of visible samples of each part and chunk of a job."""
        found = samples_by_chunk(committed_records(self.topic))
        return {(part, chunk): samples for (job, part, chunk), samples in sorted(found.items()) if job == name}

    def check_same(self, name: str, other: str) -> None:
        """Assert that two done jobs have the same parts, counts, reports, and records in the topic."""
        one, two = self.board.job(name), self.board.job(other)
        assert (one.state, one.reason) == (two.state, two.reason) == (BulkJobState.DONE, "")
        assert one.report == two.report
        assert self.rows(name) == self.rows(other)
        assert self.landed(name) == self.landed(other)
        assert self.samples(name) == self.samples(other)
        assert sum(self.samples(name).values()) == ROWS - ROWS // BAD_EVERY


@contextmanager
def imports_into(bootstrap: str, folder: Path) -> Iterator[Imports]:
    """Imports into their own topic."""
    with closing(open_sqlite_store(folder / "jobs.sqlite", CLOCK)) as store:
        yield Imports(bootstrap, BulkBoard(store, "metrics", CLOCK), folder)


@contextmanager
def executors_of(context: SparkContext, opener: KindOpener) -> Iterator[SparkPartRunner]:
    """A runner of parts on a session's executors."""
    with PartListener(LOOPBACK) as listener:
        yield SparkPartRunner(SparkLauncher(context), listener, {IMPORT: opener}, CLOCK, grant_s=GRANT_S)

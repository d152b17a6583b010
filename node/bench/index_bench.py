"""`strandline bench index`: measures the part-key index with a given number of series."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from strandline.index.bucket_codec import EncodedBucket, decode_bucket
from strandline.index.bucket_load import load_index
from strandline.index.cardinality import METRIC_NAME
from strandline.index.key_documents import LuceneDocuments
from strandline.index.local_copy import lucene_folder, save_copy
from strandline.index.matchers import RegexBudget, to_query
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.selectors import parse_selector
from strandline.index.shard_index import ShardIndex
from strandline.index.vm import DEFAULT_HEAP_MB, java_heap_bytes, start_vm
from strandline.node.bench.copy_opening import seconds_to_open
from strandline.node.bench.fleet import SERIES_A_RECORD, labels_of, records
from strandline.node.bench.index_policy import EXPIRY, HOUR, IDENTITY, NOW, POLICY
from strandline.node.bench.machine import Machine
from strandline.node.bench.table_growth import KEYS_A_BATCH, TableGrowth, grow_table
from strandline.node.bench.timing import Latency, Stopwatch, latency
from strandline.node.output import Block, Table
from strandline.node.stack.process import resident_bytes
from strandline.node.steps import Steps
from strandline.wire.decode import Limits, decode_batch

RECORDS_A_BATCH = 10
BUDGET = RegexBudget(max_terms=10_000_000, max_ms=60_000)


@dataclass(frozen=True, slots=True)
class Stage:
    """An operation that is run once for all keys."""

    what: str
    seconds: float
    keys_per_second: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes per key: of the table, the columns and the bitmaps in Python, of the Java heap, and all resident memory."""

    table: float
    columns: float
    bitmaps: float
    java_heap: float
    resident: float


@dataclass(frozen=True, slots=True)
class IndexBenchReport:
    """The results of one run."""

    series: int
    labels_a_series: int
    samples_a_record: int
    machine: Machine
    stages: tuple[Stage, ...]
    lookups: tuple[Latency, ...]
    table_growth: TableGrowth
    memory: Memory
    bucket_bytes_a_key: float

    def blocks(self) -> Iterator[Block]:
        """The results as tables."""
        yield f"{self.series:,} series, {self.labels_a_series} labels each, {self.samples_a_record:,} samples a record"
        yield str(self.machine)
        yield ""
        yield Table(
            ("stage", "seconds", "keys/s"),
            tuple((one.what, f"{one.seconds:.3f}", f"{one.keys_per_second:,.0f}") for one in self.stages),
        )
        yield ""
        yield Table(
            ("lookup", "found", "p50 ms", "p99 ms"),
            tuple((one.what, f"{one.found:,}", f"{one.p50_ms:.3f}", f"{one.p99_ms:.3f}") for one in self.lookups),
        )
        yield ""
        growth = self.table_growth
        yield Table(
            ("longest pause of a growing key table", "keys then", "ms", "ms of CPU", "ms a million keys", "bound"),
            (
                (
                    f"the longest of {growth.growths}, with {KEYS_A_BATCH:,} new keys a batch",
                    f"{growth.keys:,}",
                    f"{growth.pause_ms:.1f}",
                    f"{growth.cpu_ms:.1f}",
                    f"{growth.pause_ms_a_million_keys:.1f}",
                    f"{growth.bound_ms_a_million_keys:.0f}",
                ),
            ),
        )
        yield ""
        parts = (("key table", self.memory.table), ("columns", self.memory.columns), ("bitmaps", self.memory.bitmaps))
        rows = (*parts, ("Java heap", self.memory.java_heap), ("resident, in total", self.memory.resident))
        yield Table(("memory", "bytes a key"), tuple((what, f"{size:.1f}") for what, size in rows))
        yield f"A stored index bucket with every key takes {self.bucket_bytes_a_key:.1f} bytes a key."


class IndexBench:
    """One run in its own folder. Uses the JVM of the process, or starts one with a heap of `heap_mb`."""

    def __init__(self, series: int, folder: Path, steps: Steps, heap_mb: int = DEFAULT_HEAP_MB) -> None:
        self._series = series
        self._heap_mb = heap_mb
        self._folder = folder
        self._steps = steps
        self._stages: list[Stage] = []

    def run(self) -> IndexBenchReport:
        """Add the series, look some up, store and load their bucket, save and open the local copy, grow a key table."""
        start_vm(self._heap_mb)
        resident_before = _own_memory()
        copy = self._folder / "copy"
        with PartKeyIndex.open(lucene_folder(copy)) as lucene:
            index = self._add(lucene)
            lookups = self._look_up(lucene)
            memory = self._memory(index, resident_before)
            bucket_bytes = self._cut_and_copy(index, lucene, copy)
        self._open_copy(copy)
        with self._steps.step("Growing a key table"):
            table_growth = grow_table(self._series)
        return IndexBenchReport(
            series=self._series,
            labels_a_series=len(labels_of(0)),
            samples_a_record=min(SERIES_A_RECORD, self._series),
            machine=Machine.this(),
            stages=tuple(self._stages),
            lookups=lookups,
            table_growth=table_growth,
            memory=memory,
            bucket_bytes_a_key=bucket_bytes / self._series,
        )

    def _add_stage(self, what: str, seconds: float) -> None:
        self._stages.append(Stage(what, seconds, self._series / seconds))

    def _add(self, lucene: PartKeyIndex) -> ShardIndex:
        index = ShardIndex(
            POLICY, LuceneDocuments(lucene), open_bucket=NOW // HOUR, next_part_id=0, series_limit=self._series
        )
        decoding, adding, refreshing = Stopwatch(), Stopwatch(), Stopwatch()
        with self._steps.step("Adding keys") as step:
            batch: list[bytes] = []
            for number, body in enumerate(records(self._series, NOW), start=1):
                batch.append(body)
                if len(batch) == RECORDS_A_BATCH or number * SERIES_A_RECORD >= self._series:
                    with decoding.running():
                        columns = decode_batch(batch, Limits())
                    with adding.running():
                        index.take(columns)
                    batch = []
                    step.note = f"{len(index.table):,} of {self._series:,}"
        with self._steps.step("Refreshing"), refreshing.running():
            lucene.refresh()
        self._add_stage("decode the records", decoding.seconds)
        self._add_stage("add new keys in bulk: table, columns, Lucene", adding.seconds)
        self._add_stage("refresh", refreshing.seconds)
        return index

    def _look_up(self, lucene: PartKeyIndex) -> tuple[Latency, ...]:
        one = dict(labels_of(self._series // 2))
        ten_hosts = "|".join(dict(labels_of(number * 1000))["instance"].replace(".", "\\\\.") for number in range(10))
        # A different one each time, because Lucene caches the result of an expression.
        suffixes = (f'{{pod=~".*{dict(labels_of(number))["pod"][-9:]}"}}' for number in range(self._series))
        with self._steps.step("Looking up"):
            found = [
                self._selector(lucene, "equality, 1 key", f'{{pod="{one["pod"]}"}}', 500),
                self._selector(lucene, "equality, 1 k keys", f'{{instance="{one["instance"]}"}}', 500),
                self._selector(lucene, "equality, 10 k keys", f'{{namespace="{one["namespace"]}"}}', 200),
                self._selector(lucene, "equality, all keys", '{job="node-exporter"}', 20),
                self._selector(lucene, "two labels", f'{{__name__="{one["__name__"]}",status="{one["status"]}"}}', 200),
                self._selector(lucene, "list regex, 10 values", f'{{instance=~"{ten_hosts}"}}', 100),
                self._selector(lucene, "prefix regex", '{instance=~"host-000.*"}', 50),
                latency("suffix regex over every pod", lambda: self._find(lucene, next(suffixes)), runs=5),
                self._selector(lucene, "negation", f'{{job="node-exporter",namespace!="{one["namespace"]}"}}', 20),
            ]
            query = to_query(parse_selector(f'{{namespace="{one["namespace"]}"}}'), BUDGET)
            found += [
                latency(
                    "label values of every pod, limit 10 k",
                    lambda: len(lucene.label_values("pod", limit=10_000).terms),
                    runs=20,
                ),
                latency(
                    "label values under a matcher",
                    lambda: len(lucene.label_values("pod", query, limit=10_000).terms),
                    runs=10,
                ),
                latency("label names", lambda: len(lucene.label_names().terms), runs=50),
                latency("cardinality of every label", lambda: lucene.cardinality().pairs, runs=5),
                latency(
                    "top 10 metric names by series", lambda: len(lucene.top_values_by_series(METRIC_NAME)), runs=50
                ),
                latency("top 10 of every pod by series", lambda: len(lucene.top_values_by_series("pod")), runs=5),
                latency("cardinality under a matcher", lambda: lucene.cardinality(query).pairs, runs=5),
            ]
        return tuple(found)

    def _selector(self, lucene: PartKeyIndex, what: str, selector: str, runs: int) -> Latency:
        return latency(what, lambda: self._find(lucene, selector), runs=runs)

    @staticmethod
    def _find(lucene: PartKeyIndex, selector: str) -> int:
        """A lookup as for a client: from the selector's text to the bitmap."""
        return len(lucene.search(to_query(parse_selector(selector), BUDGET)))

    def _memory(self, index: ShardIndex, resident_before: int) -> Memory:
        bitmaps = sum(len(bitmap.serialize()) for bitmap in (index.open.changed, index.open.active))
        return Memory(
            table=index.table.nbytes / self._series,
            columns=index.columns.nbytes / self._series,
            bitmaps=bitmaps / self._series,
            java_heap=java_heap_bytes() / self._series,
            resident=(_own_memory() - resident_before) / self._series,
        )

    def _cut_and_copy(self, index: ShardIndex, lucene: PartKeyIndex, copy: Path) -> int:
        cutting, encoding, saving = Stopwatch(), Stopwatch(), Stopwatch()
        with self._steps.step("Cutting and storing the bucket"):
            with cutting.running():
                frozen = index.cut()
            snapshot = index.snapshot()
            with encoding.running():
                encoded = index.encode(frozen)
            index.stored(frozen, EXPIRY[frozen.bucket])
        with self._steps.step("Saving the local copy"), saving.running():
            save_copy(copy, lucene, snapshot, IDENTITY)
        self._add_stage("cut a bucket in which every key is new", cutting.seconds)
        self._add_stage("encode that bucket", encoding.seconds)
        self._add_stage("save the local copy: commit and columns", saving.seconds)
        self._load(frozen.bucket, encoded)
        return sum(map(len, encoded.rows))

    def _load(self, bucket: int, encoded: EncodedBucket) -> None:
        loading = Stopwatch()
        with (
            self._steps.step("Rebuilding from the stored bucket"),
            PartKeyIndex.open(self._folder / "rebuilt") as lucene,
            loading.running(),
        ):
            stored = decode_bucket(bucket, encoded.rows, len(encoded.rows), encoded.checksum)
            load_index(
                POLICY,
                LuceneDocuments(lucene),
                [stored],
                EXPIRY,
                open_bucket=bucket + 1,
                next_part_id=self._series,
                series_limit=self._series,
            )
            lucene.refresh()
        self._add_stage("rebuild from the stored bucket", loading.seconds)

    def _open_copy(self, copy: Path) -> None:
        with self._steps.step("Opening the local copy in a new process"):
            seconds = seconds_to_open(copy, self._series, self._heap_mb)
        self._add_stage("open the local copy in a new process, verified", seconds)


def _own_memory() -> int:
    return resident_bytes(os.getpid()) or 0

"""Heavy queries, slow clients and a hung store, with a node of real processes: the front respects its memory limit, and
the shards continue their work.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.node.demo.programs import Program
from strandline.node.stack import Stack
from strandline.node.stack.ports import LOOPBACK
from strandline.recovery.cutting import Cutting
from strandline.store.cassandra.store import open_cassandra_store
from strandline.store.protocol import Store
from strandline.store.rows import ShardId
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.cassandra_store import connection_to
from support.prometheus import PrometheusClient
from support.service import Service, eventually, service
from support.slow_readers import SlowReaders
from support.stalling_proxy import StallingProxy

pytestmark = pytest.mark.system

CLOCK = SystemClock()
SHARDS = "/api/v1/strandline/shards"
MEMORY_MB = 128
SERIES, SERIES_A_REQUEST = 4000, 1000
INTERVAL, GROUPS = 4_000, 4
CUTTING = Cutting(INTERVAL, 1_000)
IMPORTED = 800_000
# For a shard on two cores with a load of 13: far above the effect of a short lack of processor time.
MAX_LAG_S = 15
MAPPING = """
metric = "imported"
value = "usage"
time = {column = "at", unit = "ms"}
labels = ["host"]
"""
PADDING = "x" * 200


@dataclass
class Loaded:
    """A service with series in its node, and the proxy in front of its store."""

    running: Service
    cassandra: StallingProxy
    store: Store
    shards: list[ShardId]
    written_at: int

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over its samples with these labels."""
        text = self.running.node.request("/metrics")[1].decode()
        found = re.findall(rf"^{name}(\{{[^}}]*\}})? (\S+)$", text, re.MULTILINE)
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(value) for given, value in found if all(label in given for label in wanted))

    def front_bytes(self) -> int:
        (front,) = [process for process in self.running.node.data(SHARDS)["processes"] if process["name"] == "front"]
        return int(front["memory_bytes"])

    def points(self, step: str = "1s") -> str:
        """A query of all series: each has one sample, which counts for 300 steps of a second."""
        start = self.written_at // 1000
        return f"/api/v1/query_range?query=heavy&start={start}&end={start + 299}&step={step}"


@pytest.fixture(scope="module")
def loaded(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder: Path = tmp_path_factory.mktemp("load")
    with ExitStack() as opened:
        cassandra = opened.enter_context(closing(StallingProxy(stack.cassandra_port)))
        running = opened.enter_context(
            service(
                stack,
                folder,
                dataset={"flush_interval": f"{INTERVAL}ms", "groups": GROUPS},
                cassandra={"port": cassandra.port},
                query={"answer_memory": f"{MEMORY_MB}m"},
                replay={"mode": "direct"},
                jobs={"chunk_bytes": "1m", "max_lag": f"{MAX_LAG_S}s"},
            )
        )
        store = opened.enter_context(closing(open_cassandra_store(connection_to(stack, "service"), CLOCK)))
        name = running.node.data(SHARDS)["dataset"]
        made = Loaded(running, cassandra, store, [ShardId(name, number) for number in range(2)], CLOCK.now_ms())
        write(running, "heavy", SERIES, made.written_at)
        eventually(lambda: count(running, "heavy") == SERIES, "all series are found")
        yield made


def write(running: Service, name: str, series: int, time: int) -> None:
    """A sample of each series."""
    for first in range(0, series, SERIES_A_REQUEST):
        numbers = range(first, min(series, first + SERIES_A_REQUEST))
        labels = ([("__name__", name), ("n", f"{number:06}"), ("padding", PADDING)] for number in numbers)
        body = compress(encode_request([Series(label, [(time, 1.0)]) for label in labels]))
        running.gateway.post("/api/v1/write", body)


def count(running: Service, name: str) -> int:
    return int(running.node.data("/api/v1/strandline/cardinality", match=name)["series"])


def error_of(received: bytes) -> str:
    return str(json.loads(received.partition(b"\r\n\r\n")[2])["error"])


# Eight request about 20 MB of points each, which is 60 MB of JSON; 130 request lists of a megabyte.
@pytest.mark.parametrize(("clients", "kind"), [(8, "points"), (130, "series")])
def test_slow_readers_of_long_answers_use_limited_memory_and_release_it(
    loaded: Loaded, clients: int, kind: str
) -> None:
    node = loaded.running.node
    target = loaded.points() if kind == "points" else "/api/v1/series?match[]=heavy"
    before = loaded.front_bytes()
    with SlowReaders(node.address, target, clients) as readers:
        eventually(readers.all_have_an_answer, "each client is answered or refused")
        accepted, refused = readers.with_status(200), readers.with_status(503)
        assert len(accepted) + len(refused) == clients
        assert accepted
        assert refused
        eventually(lambda: all(b'"error"' in client.received for client in refused), "refusals are whole")
        assert all("query.answer_memory" in error_of(client.received) for client in refused)
        assert 0 < loaded.metric("strandline_answer_memory_bytes") <= MEMORY_MB << 20
        assert loaded.front_bytes() < before + (MEMORY_MB + 100 << 20)
        # Other clients are served meanwhile.
        assert node.data("/api/v1/labels") == ["__name__", "n", "padding"]
        assert len(node.data("/api/v1/query", query='heavy{n="000001"}', time=loaded.written_at / 1000)["result"]) == 1
        assert node.is_ready()
    eventually(lambda: loaded.metric("strandline_answer_memory_bytes") == 0, "nothing is held for clients that left")
    eventually(lambda: loaded.front_bytes() < before + (48 << 20), "the front gives the memory back")


class Repeated:
    """Calls a function repeatedly in separate threads while the context is active, and records errors."""

    def __init__(self, work: Callable[[], object], threads: int = 1) -> None:
        self.done, self.failures = 0, list[str]()
        self._work, self._leave = work, threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]

    def __enter__(self) -> "Repeated":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        for thread in self._threads:
            thread.join(60)

    def _run(self) -> None:
        while not self._leave.is_set():
            try:
                self._work()
                self.done += 1
            except Exception as error:  # noqa: BLE001 - the test looks at it
                self.failures.append(repr(error)[:300])


@contextmanager
def importing(loaded: Loaded) -> Iterator[None]:
    """`strandline job import` in another process. The context begins when the first samples have landed, and stops the
    import at its end.
    """
    folder, path = loaded.running.settings.parent, str(loaded.running.settings)
    first = loaded.written_at - IMPORTED
    rows = (f"{first + row},host-{row % 500},{row}" for row in range(IMPORTED))
    (folder / "data.csv").write_text("\n".join(["at,host,usage", *rows]))
    (folder / "mapping.toml").write_text(MAPPING)
    source = [str(folder / "data.csv"), "--format", "csv", "--mapping", str(folder / "mapping.toml"), "--on", "process"]
    # At this rate, it takes longer than the test.
    arguments = ["job", "import", *source, "--rate", "60000", "--config", path]
    program = Program(arguments, folder / "import.log", environ=loaded.running.environ)
    try:
        eventually(lambda: count(loaded.running, "imported") > 0 or program.exit_code is not None, "samples land")
        yield
        assert program.exit_code is None, program.log_text()[-2000:]
    finally:
        program.end()


@contextmanager
def heavy_queries(loaded: Loaded) -> Iterator[None]:
    """Two clients that read all samples, and five whose regular expressions take time for each label value."""
    node = loaded.running.node

    def all_samples() -> None:
        status, body = node.request("/api/v1/query", query='{n=~".+"}[1h]', time=CLOCK.now_ms() // 1000, limit=1)
        assert status == 200, body[:300]

    def costly_expressions() -> None:
        # Each is matched with all values and returns only some series, so the shards are busy.
        status, body = node.request("/api/v1/series", match=[f'{{n=~".*(0|1)*{n}[0-9]*x"}}' for n in range(25)])
        assert status == 200, body[:300]

    with Repeated(all_samples, threads=2) as queried, Repeated(costly_expressions, threads=5) as searched:
        eventually(lambda: queried.done and searched.done, "both are answered")
        yield
    assert not queried.failures + searched.failures


@contextmanager
def slow_clients(loaded: Loaded) -> Iterator[None]:
    """Clients that read their answers of 60 MB slowly."""
    with SlowReaders(loaded.running.node.address, loaded.points(), 8) as readers:
        eventually(readers.all_have_an_answer, "each is answered or refused")
        yield
        assert any(not client.is_ended for client in readers.with_status(200)), "some clients are still reading"


class DelayMonitor:
    """The delays of the shards' work in milliseconds, as visible in their store, which is read every fifth of a second.
    Work that is not done yet counts with the time until now. The lag, in seconds, is reported by the node.
    """

    def __init__(self, store: Store, shards: list[ShardId], node: PrometheusClient) -> None:
        self._store, self._shards, self._node, self._leave = store, shards, node, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failures = list[str]()
        self.begin()

    def begin(self) -> None:
        """Start to measure."""
        self.heartbeat_gap = self.cut_late = self.unstored_age = 0
        self.lag_s = 0.0
        self.first_bucket, self.stored_bucket = CLOCK.now_ms() // INTERVAL, 0

    def __enter__(self) -> "DelayMonitor":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._leave.wait(0.2):
            try:
                stored = [self._measure(shard) for shard in self._shards]
                self.stored_bucket = min(stored)
                lags = [shard["lag_s"] for shard in self._node.data(SHARDS)["shards"]]
                self.lag_s = max(self.lag_s, *(lag or 0.0 for lag in lags))
            except Exception as error:  # noqa: BLE001 - the test looks at it
                self.failures.append(repr(error)[:300])

    def _measure(self, shard: ShardId) -> int:
        """Measure a shard. Returns its newest stored bucket."""
        # Read before the request, so that a slow request adds no delay.
        now = CLOCK.now_ms()
        state = self._store.state(shard)
        rows = self._store.manifest(shard, first=now // INTERVAL - 20)
        assert state is not None
        assert state.seen_at is not None
        assert rows is not None
        # A shard that has just started has stored nothing yet.
        before = self.first_bucket - 1
        newest_cut = max((cut.bucket for cut in rows.cuts), default=before)
        of_group = [[row.bucket for row in rows.groups if row.group == group] for group in range(GROUPS)]
        stored = min(max(buckets, default=before) for buckets in of_group)
        self.heartbeat_gap = max(self.heartbeat_gap, now - state.seen_at)
        self.cut_late = max(self.cut_late, now - CUTTING.deadline(newest_cut + 1))
        self.unstored_age = max(self.unstored_age, now - (stored + 2) * INTERVAL)
        return stored


# Milliseconds. On two cores with a load of 13, the maxima were 10,400, 400 and 4,300. Heartbeats are due every ten
# seconds, so not each load meets one; those that do must not be late.
HEARTBEAT_GAP, CUT_LATE, UNSTORED_AGE = 15_000, 4_000, 10_000


@pytest.mark.parametrize("load", [heavy_queries, slow_clients, importing])
def test_query_load_does_not_delay_heartbeats_cuts_flushes_or_reading_of_a_shard(
    loaded: Loaded, load: Callable[[Loaded], AbstractContextManager[None]]
) -> None:
    def ingest() -> None:
        write(loaded.running, "live", 500, CLOCK.now_ms())

    watch = DelayMonitor(loaded.store, loaded.shards, loaded.running.node)
    with watch, Repeated(ingest) as ingested, load(loaded):
        watch.begin()
        eventually(lambda: watch.stored_bucket >= watch.first_bucket, "the bucket of now is cut and stored")
    assert not watch.failures + ingested.failures
    assert watch.heartbeat_gap < HEARTBEAT_GAP
    assert watch.cut_late < CUT_LATE
    assert watch.unstored_age < UNSTORED_AGE
    assert watch.lag_s < MAX_LAG_S


def test_a_query_that_waits_for_a_hung_store_names_the_store(loaded: Loaded) -> None:
    # Separate series: those that were read before may still be in memory.
    node, query = loaded.running.node, {"query": "unread", "time": loaded.written_at / 1000}
    eventually(lambda: loaded.metric("strandline_stored_samples_total") >= SERIES, "the samples are stored")
    before = loaded.metric("strandline_stored_samples_total")
    write(loaded.running, "unread", 100, loaded.written_at)
    stored = before + 100
    eventually(lambda: loaded.metric("strandline_stored_samples_total") >= stored, "these are stored, too")
    name = f"Cassandra at {LOOPBACK}:{loaded.cassandra.port}"
    assert [shard["store"] for shard in node.data(SHARDS)["shards"]] == [name, name]
    with loaded.cassandra.stalled():
        status, body = node.request("/api/v1/query", **query, timeout="2s")
        assert (status, json.loads(body)["errorType"]) == (503, "unavailable")
        assert f"its store ({name}) has not answered for" in json.loads(body)["error"]
        assert loaded.metric("strandline_store_unanswered_seconds") >= 1
    eventually(lambda: node.request("/api/v1/query", **query)[0] == 200, "queries are answered again")
    eventually(lambda: loaded.metric("strandline_store_unanswered_seconds") < 1, "the store answers again")

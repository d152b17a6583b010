"""Worlds of shards for queries, in this process or through the link, and a model of the right answers."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from strandline.index.documents import decode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.index.matchers import Matcher
from strandline.index.selectors import parse_selector
from strandline.index.vm import start_vm
from strandline.node.query.answer_memory import AnswerMemory, MemoryLease
from strandline.node.query.answers import Answer, FragmentResult, SamplesAnswer, SeriesCount
from strandline.node.query.frames import decode_frame
from strandline.node.query.index_version import IndexVersionPage, version_path
from strandline.node.query.link_server import LinkServer
from strandline.node.query.lookup_frames import lookups_path
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import Cancellation, EvaluationLimits, QueryScope
from strandline.node.query.request_messages import request_of
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_link import ShardLink
from strandline.node.query.shard_queries import ShardClient, ShardQueries
from strandline.node.query.shard_requests import (
    BucketsRequest,
    CardinalityRequest,
    KeyPageRequest,
    LabelNamesRequest,
    LabelValuesRequest,
    SamplesRequest,
    Selector,
    SeriesRequest,
    ShardRequest,
)
from strandline.node.shard.index_storage import LuceneStorage, MemoryStorage
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Status
from strandline.node.status.processes import ProcessState, ShardProcessStatus
from strandline.node.workers import Workers
from strandline.promql.plan.fragments import AnyFragment
from strandline.store.rows import ShardId
from strandline.time_range import ALL_TIMES, TimeRange
from support.links import CLOCK, Loop
from support.shard_world import Name, World

Labels = tuple[tuple[str, str], ...]


class LuceneWorld(World):
    """A world whose shard has its keys in Lucene, and refreshes searches at every step."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        start_vm()
        super().__init__(folder, **changes)
        options = self.options
        self.home = LuceneStorage(options.shard, folder / "index", options.policy.retention, 1, 0.0, self.clock)

    def parts(self, home: MemoryStorage | None = None) -> ShardParts:
        made = super().parts(home)
        return replace(made, index_storage=self.home)

    def crash(self) -> None:
        super().crash()
        # The folder's lock ends with the process.
        self.home.close()

    def close(self) -> None:
        self.home.close()
        super().close()


@dataclass
class LiveWorld:
    """A world as a `LiveShard`, with its current shard."""

    world: World

    @property
    def status(self) -> Status:
        return self.world.status

    @property
    def shard(self) -> Shard | None:
        return self.world.shard

    @property
    def parts(self) -> ShardParts:
        return self.world.parts()


class AnswersInProcess:
    """A `ShardClient` without a link."""

    def __init__(self, answers: ShardAnswers) -> None:
        self.answers = answers

    async def look_up(self, _frame: bytes, _memory: MemoryLease) -> None:
        """There is no lookup server."""

    async def request(self, frame: bytes, _memory: MemoryLease) -> Answer:
        request, seconds = request_of(decode_frame(bytearray(frame)))
        return self.answers.answer(request, Cancellation(CLOCK, seconds))

    def index_version(self) -> None:
        """Nothing is cached."""


class CountingLink(ShardLink):
    """Counts the lookups that the JVM has answered, and those that were sent to it."""

    answered, looked_up = 0, 0

    async def look_up(self, frame: bytes, memory: MemoryLease) -> Answer | None:
        answer = await super().look_up(frame, memory)
        self.looked_up += 1
        self.answered += answer is not None
        return answer


@dataclass
class WorldService:
    """A `LinkService` of a world."""

    world: World
    answers: ShardAnswers
    lookups: LookupGate
    page: IndexVersionPage

    def publish(self) -> None:
        """Publish, as a shard does after each of its steps."""
        self.answers.publish(self.page, self.lookups)

    def close(self) -> None:
        self.lookups.close()
        self.page.close()

    def answer(self, request: ShardRequest, cancellation: Cancellation) -> Answer:
        return self.answers.answer(request, cancellation)

    def report(self) -> bytes:
        return ShardReport(self.world.status, ProcessFigures.now()).to_json()


@dataclass
class FixedShards:
    """A `NodeShards` with a fixed status."""

    statuses: dict[int, ShardProcessStatus] = field(default_factory=dict)
    topic_partitions: int | None = None

    def partitions(self) -> int | None:
        return self.topic_partitions

    def shards(self) -> tuple[ShardProcessStatus, ...]:
        return tuple(self.statuses[shard] for shard in sorted(self.statuses))


_QUERIES = {
    SeriesRequest: ShardQueries.series,
    LabelNamesRequest: ShardQueries.label_names,
    LabelValuesRequest: ShardQueries.label_values,
    SamplesRequest: ShardQueries.samples,
    KeyPageRequest: ShardQueries.key_page,
    CardinalityRequest: ShardQueries.cardinality,
    BucketsRequest: ShardQueries.buckets,
}


@dataclass
class NodeWorld:
    """Shards of one dataset, and the queries over them."""

    worlds: list[LuceneWorld]
    clients: dict[int, ShardClient]
    status: FixedShards
    queries: ShardQueries
    loop: Loop
    services: list[WorldService]
    publishes: bool = False
    memory: AnswerMemory = field(default_factory=lambda: AnswerMemory(1 << 30))

    def request(self, request: ShardRequest, seconds: float = 30.0) -> Any:
        """The answer of all shards. With `publishes`, the shards publish their state before, as they do after each
        step.
        """
        if self.publishes:
            for service in self.services:
                service.publish()
        with self._scope(seconds) as scope:
            return self.loop.run(_QUERIES[type(request)](self.queries, request, scope))

    def evaluate(self, fragment: AnyFragment, limits: EvaluationLimits, seconds: float = 30.0) -> FragmentResult:
        """The result of a fragment of a PromQL query over all shards."""
        with self._scope(seconds) as scope:
            return self.loop.run(self.queries.evaluate(fragment, limits, scope))

    def count_series(self, selectors: tuple[Selector, ...]) -> SeriesCount:
        with self._scope(30.0) as scope:
            return self.loop.run(self.queries.count_series(selectors, None, scope))

    @contextmanager
    def _scope(self, seconds: float) -> Iterator[QueryScope]:
        lease = self.memory.lease()
        try:
            yield QueryScope(seconds, lease)
        finally:
            lease.release()
            assert self.memory.used == 0


@contextmanager
def node_world(
    folder: Path, *, shards: int, linked: bool, publishes: bool = False, **changes: Any
) -> Iterator[NodeWorld]:
    """Started shards, called directly or through the link."""
    with ExitStack() as opened:
        worlds: list[LuceneWorld] = []
        clients: dict[int, ShardClient] = {}
        services: list[WorldService] = []
        loop = opened.enter_context(closing(Loop()))
        workers = opened.enter_context(closing(Workers(2)))
        for number in range(shards):
            home = folder / str(number)
            home.mkdir()
            world = opened.enter_context(closing(LuceneWorld(home, shard=ShardId("metrics", number), **changes)))
            world.start()
            answers = opened.enter_context(closing(ShardAnswers(LiveWorld(world))))
            worlds.append(world)
            socket = home / "socket"
            gate = LookupGate(lookups_path(socket) if linked else None)
            page = IndexVersionPage(version_path(socket) if linked else None)
            services.append(opened.enter_context(closing(WorldService(world, answers, gate, page))))
            if linked:
                opened.enter_context(LinkServer(socket, services[-1], CLOCK))
                link = CountingLink(socket, number, workers)
                opened.callback(loop.run, _closed(link))
                clients[number] = link
            else:
                clients[number] = AnswersInProcess(answers)
        status = FixedShards({shard: ShardProcessStatus(shard, ProcessState.RUNNING) for shard in range(shards)})
        queries = ShardQueries(lambda: clients, status, workers, concurrency=4)
        yield NodeWorld(worlds, clients, status, queries, loop, services, publishes)


async def _closed(link: ShardLink) -> None:
    link.close()


def written(milliseconds: int) -> str:
    """A time as formatted in warnings."""
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


def selector(text: str) -> tuple[Matcher, ...]:
    return parse_selector(text)


def labels_of(keys: KeyBytes) -> list[Labels]:
    """The keys, in order, as sorted labels."""
    return [tuple(decode_part_key(keys.key(place)).items()) for place in range(len(keys))]


def names_of(keys: KeyBytes) -> list[Name]:
    """The keys of a world, in order."""
    return [(dict(labels)["__name__"], dict(labels)["name"]) for labels in labels_of(keys)]


def samples_of(answer: SamplesAnswer) -> dict[Name, list[tuple[int, float]]]:
    """The samples of each key. Fails if a key occurs twice."""
    found: dict[Name, list[tuple[int, float]]] = {}
    for place, name in enumerate(names_of(answer.keys)):
        part = slice(int(answer.first_sample[place]), int(answer.first_sample[place + 1]))
        assert name not in found
        found[name] = list(zip(answer.time[part].tolist(), answer.value[part].tolist(), strict=True))
    return found


def expected_samples(
    worlds: list[LuceneWorld] | list[World], times: TimeRange = ALL_TIMES, names: Mapping[Name, object] | None = None
) -> dict[Name, list[tuple[int, float]]]:
    """What was produced. Of two samples at one time, that of the higher shard, or else the later one."""
    expected: dict[Name, dict[int, float]] = defaultdict(dict)
    for world in worlds:
        for name, samples in world.expected().items():
            expected[name] |= samples
    return {
        name: kept
        for name, samples in expected.items()
        if (names is None or name in names)
        and (kept := [(time, samples[time]) for time in sorted(samples) if times.first <= time <= times.last])
    }

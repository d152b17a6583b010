"""Worlds of shards that can be asked, in this process or through the link, and a model of what is right."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from strandline.clock import Clock, SystemClock
from strandline.index.documents import decode_part_key
from strandline.index.matchers import Matcher
from strandline.index.selectors import parse_selector
from strandline.index.vm import start_vm
from strandline.node.query.answers import Answer, KeyBytes, SamplesAnswer
from strandline.node.query.asks import Ask
from strandline.node.query.edition import EditionPage
from strandline.node.query.link_client import LinkClient
from strandline.node.query.link_server import LinkServer
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.loop_links import LoopLinks
from strandline.node.query.node_queries import ShardClient, ShardQueries
from strandline.node.query.plain_lookups import lookups_path
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.shard.documents_home import DictHome, LuceneHome
from strandline.node.shard.parts import ShardParts
from strandline.node.shard.report import ProcessFigures, ShardReport
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Status
from strandline.node.supervisor.standing import ProcessState, ShardStanding
from strandline.store.rows import ShardId
from strandline.time_range import ALL_TIMES, TimeRange
from support.shard_world import Name, World

Labels = tuple[tuple[str, str], ...]


class LuceneWorld(World):
    """A world whose shard keeps its keys in Lucene, and lets searches see them at every step."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        start_vm()
        super().__init__(folder, **changes)
        options = self.options
        self.home = LuceneHome(options.shard, folder / "index", options.policy.retention, 1, 0.0, self.clock)

    def parts(self, home: DictHome | None = None) -> ShardParts:
        made = super().parts(home)
        return ShardParts(made.options, made.log, made.store, self.home, made.dead_letters, made.clock, made.replays)

    def crash(self) -> None:
        super().crash()
        # The folder's lock goes with the process.
        self.home.close()

    def close(self) -> None:
        self.home.close()
        super().close()


@dataclass
class LiveWorld:
    """A world as a `LiveShard`: whatever shard it has now."""

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
        self.lookups = LoopLinks(Path("/nowhere"))

    def begin(self, ask: Ask, cancellation: Cancellation) -> "AskedInProcess":
        return AskedInProcess(self.answers, ask, cancellation)

    def begin_at_once(self, *_: object) -> None:
        """It is a thread's to ask."""

    def edition(self) -> None:
        """Nothing is kept."""


@dataclass
class AskedInProcess:
    answers: ShardAnswers
    ask: Ask
    cancellation: Cancellation

    def answer(self) -> Answer:
        return self.answers.answer(self.ask, self.cancellation)

    def abandon(self) -> None:
        """Nothing has begun."""


@dataclass
class WorldService:
    """A `LinkService` of a world."""

    world: World
    answers: ShardAnswers
    lookups: LookupGate
    page: EditionPage = field(default_factory=EditionPage)

    def tell(self) -> None:
        """As a shard does after each of its steps."""
        self.answers.tell(self.page, self.lookups)

    def edition_file(self) -> int:
        return self.page.file

    def close(self) -> None:
        self.lookups.close()
        self.page.close()

    def answer(self, ask: Ask, cancellation: Cancellation) -> Answer:
        return self.answers.answer(ask, cancellation)

    def report(self) -> bytes:
        return ShardReport(self.world.status, ProcessFigures.now()).to_json()


@dataclass
class FixedStanding:
    """A `NodeStanding` that says what it was told."""

    standings: dict[int, ShardStanding] = field(default_factory=dict)

    def shards(self) -> tuple[ShardStanding, ...]:
        return tuple(self.standings[shard] for shard in sorted(self.standings))


@dataclass
class NodeWorld:
    """Shards of one dataset, and the queries over them."""

    worlds: list[LuceneWorld]
    clients: dict[int, ShardClient]
    standing: FixedStanding
    queries: ShardQueries
    clock: Clock
    services: list[WorldService]

    def tell(self) -> None:
        """As the shards do after each of their steps."""
        for service in self.services:
            service.tell()

    def give(self, seconds: float = 30.0) -> Cancellation:
        return Cancellation(self.clock, seconds)


@contextmanager
def node_world(folder: Path, *, shards: int, linked: bool, **changes: Any) -> Iterator[NodeWorld]:
    """Shards that have started, asked directly or through the link."""
    with ExitStack() as opened:
        worlds: list[LuceneWorld] = []
        clients: dict[int, ShardClient] = {}
        services: list[WorldService] = []
        clock = SystemClock()
        for number in range(shards):
            home = folder / str(number)
            home.mkdir()
            world = opened.enter_context(closing(LuceneWorld(home, shard=ShardId("metrics", number), **changes)))
            world.start()
            answers = opened.enter_context(closing(ShardAnswers(LiveWorld(world))))
            worlds.append(world)
            gate = LookupGate(lookups_path(home / "socket") if linked else None)
            services.append(opened.enter_context(closing(WorldService(world, answers, gate))))
            if linked:
                opened.enter_context(LinkServer(home / "socket", services[-1], clock))
                client = opened.enter_context(closing(LinkClient(home / "socket", number, clock)))
                # As the supervisor does all the time; thus the front gets the page of editions.
                client.report(30.0)
                clients[number] = client
            else:
                clients[number] = AnswersInProcess(answers)
        standing = FixedStanding({one: ShardStanding(one, ProcessState.RUNNING) for one in range(shards)})
        yield NodeWorld(worlds, clients, standing, ShardQueries(lambda: clients, standing), clock, services)


def selector(text: str) -> tuple[Matcher, ...]:
    return parse_selector(text)


def labels_of(keys: KeyBytes) -> list[Labels]:
    """The keys, in their order, as sorted labels."""
    return [tuple(decode_part_key(keys.key(place)).items()) for place in range(len(keys))]


def names_of(keys: KeyBytes) -> list[Name]:
    """The keys of a world, in their order."""
    return [(dict(labels)["__name__"], dict(labels)["name"]) for labels in labels_of(keys)]


def samples_of(answer: SamplesAnswer) -> dict[Name, list[tuple[int, float]]]:
    """The samples of each key, as they stand; a key that comes twice fails."""
    found: dict[Name, list[tuple[int, float]]] = {}
    for place, name in enumerate(names_of(answer.keys)):
        part = slice(int(answer.first_sample[place]), int(answer.first_sample[place + 1]))
        assert name not in found
        found[name] = list(zip(answer.time[part].tolist(), answer.value[part].tolist(), strict=True))
    return found


def expected_samples(
    worlds: list[LuceneWorld] | list[World], times: TimeRange = ALL_TIMES, names: Mapping[Name, object] | None = None
) -> dict[Name, list[tuple[int, float]]]:
    """What was produced: of two samples at one time that of the higher shard, or else the later one."""
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

"""The conditions in which the JVM answers lookups directly."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.index_version import IndexVersionPage, IndexVersionReader
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.query.shard_requests import LABEL_NAMES, LabelNamesRequest
from strandline.node.shard.status import Phase
from support.packed_lookups import ALWAYS, Found, PackedLookup, answer_to, connected
from support.query_worlds import LuceneWorld
from support.shard_world import START

pytestmark = pytest.mark.unit

ASK_FEW = LabelNamesRequest(((Matcher("__name__", MatchOp.EQUAL, "few"),),), None, 100)
FOUND = Found(["__name__", "name"], [2, 2])


def cancellation() -> Cancellation:
    return Cancellation(SystemClock(), 60.0)


@dataclass
class Published:
    """What a shard publishes after each of its steps, and a client of the JVM's lookups."""

    answers: ShardAnswers
    page: IndexVersionPage
    gate: LookupGate
    path: Path

    def names_of_few(self, within: tuple[int, int] = ALWAYS) -> Found | None:
        """Publish, and look up label names. None if the lookup is declined, or there is no listener."""
        self.answers.publish(self.page, self.gate)
        if not self.path.exists():
            return None
        with connected(self.path) as connection:
            lookup = PackedLookup(LABEL_NAMES, [[("__name__", "few")]], within=within)
            return answer_to(connection, lookup.frame())


@pytest.fixture
def published(answers: ShardAnswers, tmp_path: Path) -> Iterator[Published]:
    with closing(IndexVersionPage(tmp_path / "page")) as page, closing(LookupGate(tmp_path / "look")) as gate:
        yield Published(answers, page, gate, tmp_path / "look")


def produce_few(world: LuceneWorld) -> None:
    """Two series."""
    world.produce(("few", "a", START, 1.0), ("few", "b", START, 1.0))
    world.read_all()


def test_lookups_of_a_complete_shard_are_answered_before_its_first_request(
    world: LuceneWorld, published: Published
) -> None:
    """The JVM compiles lookups when the gate opens: before the first query, and not during it."""
    produce_few(world)
    assert published.names_of_few() == FOUND
    assert published.names_of_few(within=(START - 2, START - 1)) is None, "no series existed at that time"
    world.status.lag = None
    assert published.names_of_few() is None, "answers have a warning"
    world.status.lag = 0
    assert published.names_of_few() == FOUND
    world.status.phase = Phase.FENCED
    assert published.names_of_few() is None


def test_lookups_find_series_added_later(world: LuceneWorld, published: Published) -> None:
    """Columns are reallocated when they grow beyond their capacity."""
    produce_few(world)
    assert published.names_of_few() == FOUND
    world.produce(*[("many", str(number), START, 1.0) for number in range(3000)], ("few", "c", START, 1.0))
    world.read_all()
    assert published.names_of_few() == Found(["__name__", "name"], [3, 3])


def test_a_restarted_shard_answers_from_its_new_index(world: LuceneWorld, published: Published) -> None:
    produce_few(world)
    assert published.names_of_few() == FOUND
    world.crash()
    world.start()
    world.read_all()
    assert published.names_of_few() == FOUND
    world.produce(("few", "c", START, 1.0))
    world.read_all()
    assert published.names_of_few() == Found(["__name__", "name"], [3, 3])


def test_without_a_lookup_socket_all_requests_are_answered_over_the_link(
    world: LuceneWorld, answers: ShardAnswers, tmp_path: Path
) -> None:
    world.produce(("few", "a", START, 1.0))
    world.read_all()
    answers.answer(ASK_FEW, cancellation())
    with closing(IndexVersionPage(None)) as page, closing(LookupGate(tmp_path / "missing" / "look")) as gate:
        for _ in range(2):
            answers.publish(page, gate)


def version(folder: Path, published: Published) -> tuple[int, ...] | None:
    """Publish, and read the version of the lists."""
    published.answers.publish(published.page, published.gate)
    with closing(IndexVersionReader(folder / "page")) as reader:
        index_version = reader.read()
    return index_version.numbers if index_version is not None else None


def test_a_complete_shard_publishes_a_version_until_its_lists_change(
    world: LuceneWorld, published: Published, tmp_path: Path
) -> None:
    world.produce(("few", "a", START, 1.0))
    world.read_all()
    first = version(tmp_path, published)
    assert first is not None
    world.produce(("few", "a", START + 1, 1.0))
    world.read_all()
    assert version(tmp_path, published) == first, "there is no new series"
    world.produce(("few", "b", START + 2, 1.0))
    world.read_all()
    second = version(tmp_path, published)
    assert second not in (None, first)
    world.status.lag = None
    assert version(tmp_path, published) is None, "answers have a warning"
    world.status.lag = 0
    assert version(tmp_path, published) not in (None, first)
    world.status.phase = Phase.FENCED
    assert version(tmp_path, published) is None


def test_lists_of_a_restarted_shard_have_another_version(
    world: LuceneWorld, published: Published, tmp_path: Path
) -> None:
    produce_few(world)
    before = version(tmp_path, published)
    world.crash()
    world.start()
    world.read_all()
    assert version(tmp_path, published) not in (None, before)

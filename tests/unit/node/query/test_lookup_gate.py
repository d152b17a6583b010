"""When lookups are answered beside the link, and when they are not."""

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


def give() -> Cancellation:
    return Cancellation(SystemClock(), 60.0)


@dataclass
class Published:
    """What a shard publishes after each of its steps, and whoever looks something up beside the link."""

    answers: ShardAnswers
    page: IndexVersionPage
    gate: LookupGate
    path: Path

    def few(self, within: tuple[int, int] = ALWAYS) -> Found | None:
        """Publish, and ask for the names of labels; None if that is declined, or nobody listens."""
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
    """The JVM compiles lookups when it may answer them: before the first query rather than beside it."""
    produce_few(world)
    assert published.few() == FOUND
    assert published.few(within=(START - 2, START - 1)) is None, "they were not there then"
    world.status.lag = None
    assert published.few() is None, "there is a warning to be told"
    world.status.lag = 0
    assert published.few() == FOUND
    world.status.phase = Phase.FENCED
    assert published.few() is None


def test_lookups_find_series_added_later(world: LuceneWorld, published: Published) -> None:
    """Columns move when there are more of them than there is room for."""
    produce_few(world)
    assert published.few() == FOUND
    world.produce(*[("many", str(number), START, 1.0) for number in range(3000)], ("few", "c", START, 1.0))
    world.read_all()
    assert published.few() == Found(["__name__", "name"], [3, 3])


def test_a_restarted_shard_answers_from_its_new_index(world: LuceneWorld, published: Published) -> None:
    produce_few(world)
    assert published.few() == FOUND
    world.crash()
    world.start()
    world.read_all()
    assert published.few() == FOUND
    world.produce(("few", "c", START, 1.0))
    world.read_all()
    assert published.few() == Found(["__name__", "name"], [3, 3])


def test_without_a_lookup_socket_all_requests_are_answered_over_the_link(
    world: LuceneWorld, answers: ShardAnswers, tmp_path: Path
) -> None:
    world.produce(("few", "a", START, 1.0))
    world.read_all()
    answers.answer(ASK_FEW, give())
    with closing(IndexVersionPage(None)) as page, closing(LookupGate(tmp_path / "missing" / "look")) as gate:
        for _ in range(2):
            answers.publish(page, gate)


def version(folder: Path, published: Published) -> tuple[int, ...] | None:
    """That of the lists as the shard publishes it now."""
    published.answers.publish(published.page, published.gate)
    with closing(IndexVersionReader(folder / "page")) as reader:
        told = reader.read()
    return told.numbers if told is not None else None


def test_a_complete_shard_publishes_a_version_until_its_lists_change(
    world: LuceneWorld, published: Published, tmp_path: Path
) -> None:
    world.produce(("few", "a", START, 1.0))
    world.read_all()
    first = version(tmp_path, published)
    assert first is not None
    world.produce(("few", "a", START + 1, 1.0))
    world.read_all()
    assert version(tmp_path, published) == first, "no series came"
    world.produce(("few", "b", START + 2, 1.0))
    world.read_all()
    second = version(tmp_path, published)
    assert second not in (None, first)
    world.status.lag = None
    assert version(tmp_path, published) is None, "there is a warning to be told"
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

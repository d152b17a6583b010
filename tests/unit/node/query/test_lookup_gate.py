"""When look-ups are answered beside the link, and when they are not."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.clock import SystemClock
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.asks import LABEL_NAMES, LabelNamesAsk
from strandline.node.query.edition import EditionPage
from strandline.node.query.lookup_gate import LookupGate
from strandline.node.query.plain_lookups import FewJson
from strandline.node.query.queries import Cancellation
from strandline.node.query.shard_answers import ShardAnswers
from strandline.node.shard.status import Phase
from support.lookup_questions import ALWAYS, LookupQuestion, asked, connected
from support.query_worlds import LuceneWorld
from support.shard_world import START

pytestmark = pytest.mark.unit

ASK_FEW = LabelNamesAsk(((Matcher("__name__", MatchOp.EQUAL, "few"),),), None, 100)
FOUND = FewJson(2, b'["__name__","name"]')


def give() -> Cancellation:
    return Cancellation(SystemClock(), 60.0)


@dataclass
class Told:
    """What a shard tells after each of its steps, and whoever looks something up beside the link."""

    answers: ShardAnswers
    page: EditionPage
    gate: LookupGate
    path: Path

    def few(self, within: tuple[int, int] = ALWAYS) -> FewJson | None:
        """Tell, and ask for the names of labels; None if that is declined, or nobody listens."""
        self.answers.tell(self.page, self.gate)
        if not self.path.exists():
            return None
        with connected(self.path) as connection:
            question = LookupQuestion(LABEL_NAMES, [[("__name__", "few")]], within=within)
            return asked(connection, question.frame())


@pytest.fixture
def told(answers: ShardAnswers, tmp_path: Path) -> Iterator[Told]:
    with closing(EditionPage()) as page, closing(LookupGate(tmp_path / "look")) as gate:
        yield Told(answers, page, gate, tmp_path / "look")


def make_known(world: LuceneWorld, answers: ShardAnswers) -> None:
    """Two series that somebody has asked for over the link."""
    world.produce(("few", "a", START, 1.0), ("few", "b", START, 1.0))
    world.read_all()
    answers.answer(ASK_FEW, give())


def test_few_series_are_told_beside_the_link_by_a_shard_that_is_known_and_whole(
    world: LuceneWorld, answers: ShardAnswers, told: Told
) -> None:
    world.produce(("few", "a", START, 1.0), ("few", "b", START, 1.0))
    world.read_all()
    assert told.few() is None, "whoever asks first lets the index be refreshed"
    answers.answer(ASK_FEW, give())
    assert told.few() == FOUND
    assert told.few(within=(START - 2, START - 1)) is None, "they were not there then"
    world.status.lag = None
    assert told.few() is None, "there is a warning to be told"
    world.status.lag = 0
    assert told.few() == FOUND
    world.status.phase = Phase.FENCED
    assert told.few() is None


def test_what_comes_later_is_found_beside_the_link_as_well(
    world: LuceneWorld, answers: ShardAnswers, told: Told
) -> None:
    """Columns move when there are more of them than there is room for."""
    make_known(world, answers)
    assert told.few() == FOUND
    world.produce(*[("many", str(number), START, 1.0) for number in range(3000)], ("few", "c", START, 1.0))
    world.read_all()
    assert told.few() == FewJson(3, FOUND.text)


def test_a_shard_that_was_started_again_is_asked_over_the_link_first(
    world: LuceneWorld, answers: ShardAnswers, told: Told
) -> None:
    make_known(world, answers)
    assert told.few() == FOUND
    world.crash()
    world.start()
    world.read_all()
    assert told.few() is None
    answers.answer(ASK_FEW, give())
    assert told.few() == FOUND


def test_without_a_place_for_a_socket_all_is_answered_over_the_link(
    world: LuceneWorld, answers: ShardAnswers, tmp_path: Path
) -> None:
    world.produce(("few", "a", START, 1.0))
    world.read_all()
    answers.answer(ASK_FEW, give())
    with closing(EditionPage()) as page, closing(LookupGate(tmp_path / "missing" / "look")) as gate:
        for _ in range(2):
            answers.tell(page, gate)

"""Random expressions have the same result over a node's buffers and segments, in any distribution, as over the same
samples in one place.
"""

import random
from collections.abc import Iterator

import pytest

from strandline.promql.errors import EvaluationError, ParseError
from strandline.promql.evaluation.results import Result
from strandline.promql.local import LocalEngine
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.values import NO_SAMPLE, STALE
from support.node_evaluation import evaluate_on_node, local_engine, same, series_of
from support.promql_expressions import Vocabulary, expressions
from support.query_worlds import LuceneWorld, NodeWorld, node_world
from support.shard_world import HOUR, MINUTE

pytestmark = pytest.mark.contract

WORDS = Vocabulary(
    metrics=("requests_total", "temperature"),
    labels={"name": ("a", "b", "c", "d"), "job": ("nobody",)},
    durations=("1m", "5m", "7m30s", "20m", "70m"),
    moments=("start()", "end()"),
)
EXPRESSIONS = 150
ROUNDS, SAMPLES = 6, 300


@pytest.fixture(scope="module", params=range(3))
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeWorld]:
    """Shards whose samples arrive in any order, some hours late, and are stored or not."""
    seed: int = request.param
    draw = random.Random(seed)  # noqa: S311 - the same each time
    with node_world(tmp_path_factory.mktemp("node"), shards=seed + 1, linked=seed == 1) as made:
        start = made.worlds[0].clock.now_ms()
        values: dict[tuple[str, str, int], float] = {}
        for _ in range(ROUNDS):
            for world in made.worlds:
                _produce(world, start, values, draw)
                # Closed buckets are stored in some shards, and not yet in others.
                world.pass_time(HOUR // 2)
                if draw.random() < 0.7:
                    world.settle()
                else:
                    world.read_all()
        for world in made.worlds:
            _produce(world, start, values, draw)
            # These samples stay in the buffer.
            world.read_all()
            # The lag is updated after a while.
            world.pass_time(MINUTE)
            world.read_all()
        yield made


def _produce(world: LuceneWorld, start: int, values: dict[tuple[str, str, int], float], draw: random.Random) -> None:
    """A repeated sample has the same value: this test does not check which of two is used."""
    now = world.clock.now_ms()
    for _ in range(SAMPLES // 10):
        drawn = (
            (draw.choice(WORDS.metrics), draw.choice("abcde"), draw.randrange(start, now + 30 * MINUTE, 30_000))
            for _ in range(10)
        )
        world.produce(*((*sample, values.setdefault(sample, _value(draw))) for sample in drawn))


def _value(draw: random.Random) -> float:
    """Integers, whose sums are exact in any order; also a NaN with the bits of "no sample"."""
    return draw.choice([STALE, NO_SAMPLE, float("nan"), *(float(draw.randrange(-20, 100)) for _ in range(30))])


@pytest.fixture(scope="module")
def whole(node: NodeWorld) -> LocalEngine:
    """The same samples, with complete series."""
    return local_engine(node)


def test_samples_lie_in_segments_and_in_buffers(node: NodeWorld) -> None:
    """Otherwise the next test would not test much."""
    assert any(world.manifest().groups for world in node.worlds)
    assert any(world.running.buffer.status().samples for world in node.worlds)


def test_random_expressions_have_the_answer_of_samples_in_one_place(node: NodeWorld, whole: LocalEngine) -> None:
    end = max(world.clock.now_ms() for world in node.worlds)
    moments = (
        QueryTimes.instant(end - HOUR),
        QueryTimes(end - 2 * HOUR, end, 11 * MINUTE),
        QueryTimes(end - 3 * HOUR, end - HOUR, 4 * MINUTE),
    )
    answered = 0
    seed = 100 + len(node.worlds)
    for number, text in enumerate(expressions(seed, EXPRESSIONS, words=WORDS, depth=3)):
        times = moments[number % len(moments)]
        try:
            expected = whole.query(text, times)
        except (EvaluationError, ParseError) as error:
            with pytest.raises(type(error)):
                evaluate_on_node(node, text, times)
            continue
        same(evaluate_on_node(node, text, times), expected, text)
        answered += _has_series(expected)
    assert answered > EXPRESSIONS // 5, "many of them concern existing series"


def _has_series(result: Result) -> bool:
    return result.points is not None and bool(series_of(result))

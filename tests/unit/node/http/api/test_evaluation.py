"""Lookback and staleness, beside a plain model."""

import asyncio
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.node.http.api.evaluation import PointsPlan, Steps, samples_of_range, samples_wanted
from strandline.node.http.api.expressions import Selection
from strandline.node.http.api.pieces import Points
from strandline.node.query.answer_memory import AnswerMemory
from strandline.node.query.answers import SamplesAnswer
from strandline.node.query.asks import SamplesAsk
from strandline.node.query.queries import QueryScope, QueryTooLarge
from support.fake_queries import FakeQueries

pytestmark = pytest.mark.unit

(STALE,) = struct.unpack("<d", struct.pack("<Q", 0x7FF0000000000002))
(OTHER_NAN,) = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))
MOST = 10**6

Samples = list[tuple[int, float]]


def is_stale(value: float) -> bool:
    return struct.pack("<d", value) == struct.pack("<d", STALE)


def bits_of(value: float) -> bytes:
    return struct.pack("<d", value)


def answer(series: list[Samples], selection: Selection, steps: Steps, lookback: int) -> SamplesAnswer:
    """What a node would answer to the question that the evaluation asks."""
    queries = FakeQueries([({"n": f"{number:03}"}, samples) for number, samples in enumerate(series)])
    ask = SamplesAsk((), samples_wanted(selection, steps, lookback), 1000, MOST)
    return asyncio.run(queries.samples(ask, QueryScope(10, AnswerMemory(0).lease())))


def plain(points: Points) -> dict[int, list[tuple[int, bytes]]]:
    found = {}
    for place in range(len(points)):
        own = slice(points.first_point[place], points.first_point[place + 1])
        bits = [struct.pack("<Q", bits) for bits in points.bits[own].tolist()]
        found[int(points.keys.key(place)[-3:])] = list(zip(points.time[own].tolist(), bits, strict=True))
    return found


def evaluated(
    series: list[Samples], steps: Steps, lookback: int, selection: Selection | None = None
) -> dict[int, list[tuple[int, bytes]]]:
    selection = selection or Selection(())
    samples = answer(series, selection, steps, lookback)
    plan = PointsPlan(selection, steps, lookback, samples)
    points = plan.make()
    # What was counted beforehand is what there is.
    assert plan.points == len(points.time) == len(points.bits) == points.first_point[-1]
    assert plan.nbytes == points.time.nbytes + points.bits.nbytes
    return plain(points)


def model(series: list[Samples], moments: list[tuple[int, int]], lookback: int) -> dict[int, list[tuple[int, bytes]]]:
    """For each moment that is asked for, and the one that is looked at: the newest sample, if it counts."""
    found: dict[int, list[tuple[int, bytes]]] = {}
    for number, samples in enumerate(series):
        for asked, moment in moments:
            newest = [(time, value) for time, value in samples if moment - lookback < time <= moment][-1:]
            for _, value in newest:
                if not is_stale(value):
                    found.setdefault(number, []).append((asked, bits_of(value)))
    return found


values = st.one_of(st.sampled_from([STALE, OTHER_NAN, 0.0, -0.0, float("inf")]), st.floats(allow_nan=False, width=16))
some_series = st.lists(
    st.dictionaries(st.integers(-60, 60), values, max_size=15).map(lambda drawn: sorted(drawn.items())), max_size=4
)


@given(some_series, st.integers(-50, 50), st.integers(1, 30), st.integers(1, 12), st.integers(1, 40))
def test_points_are_the_newest_samples_that_count(
    series: list[Samples], start: int, step: int, count: int, lookback: int
) -> None:
    steps = Steps(start, step, count)
    moments = [(start + number * step, start + number * step) for number in range(count)]
    assert evaluated(series, steps, lookback) == model(series, moments, lookback)


some_steps = st.builds(Steps, st.integers(-50, 50), st.integers(1, 30), st.integers(1, 6))


@given(some_series, some_steps, st.integers(-40, 40), st.sampled_from([None, "start", "end", -10, 0, 25]))
def test_offset_and_at_move_what_is_looked_at_and_not_what_is_asked_for(
    series: list[Samples], steps: Steps, offset: int, at: int | str | None
) -> None:
    asked = [steps.start + number * steps.step for number in range(steps.count)]
    pinned = {"start": asked[0], "end": asked[-1]}.get(str(at), at)
    moments = [(moment, (moment if pinned is None else int(pinned)) - offset) for moment in asked]
    selection = Selection((), offset=offset, at=at)
    assert evaluated(series, steps, 20, selection) == model(series, moments, 20)


@given(some_series, st.integers(-50, 50), st.integers(1, 60), st.integers(-20, 20))
def test_a_range_has_the_samples_behind_its_beginning_up_to_its_end(
    series: list[Samples], moment: int, span: int, offset: int
) -> None:
    selection = Selection((), span=span, offset=offset)
    samples = answer(series, selection, Steps.at(moment), 5)
    expected = {
        number: [
            (time, bits_of(value))
            for time, value in own
            if moment - offset - span < time <= moment - offset and not is_stale(value)
        ]
        for number, own in enumerate(series)
    }
    assert plain(samples_of_range(samples)) == {number: own for number, own in expected.items() if own}


def test_a_sample_as_old_as_the_lookback_does_not_count() -> None:
    assert evaluated([[(100, 1.0)]], Steps.at(399), 300) == {0: [(399, bits_of(1.0))]}
    assert evaluated([[(100, 1.0)]], Steps.at(400), 300) == {}


def test_a_series_that_ended_has_no_point_until_it_is_back() -> None:
    series = [[(0, 1.0), (10, STALE), (20, 2.0)]]
    assert evaluated(series, Steps(0, 5, 6), 300) == {
        0: [(0, bits_of(1.0)), (5, bits_of(1.0)), (20, bits_of(2.0)), (25, bits_of(2.0))]
    }


def test_another_nan_is_a_value_and_keeps_its_bits() -> None:
    assert evaluated([[(0, OTHER_NAN)]], Steps.at(0), 300) == {0: [(0, bits_of(OTHER_NAN))]}


def test_many_samples_between_two_steps_are_passed_over() -> None:
    series = [[(time, float(time)) for time in range(10_000)]]
    assert evaluated(series, Steps(0, 999, 11), 5) == {
        0: [(time, bits_of(float(time))) for time in range(0, 9991, 999)]
    }


@pytest.mark.parametrize("at", [None, "end"])
def test_more_points_than_allowed_are_refused(at: str | None) -> None:
    selection, steps = Selection((), at=at), Steps(0, 1, 10)
    samples = answer([[(0, 1.0)], [(0, 2.0)]], selection, steps, 100)
    plan = PointsPlan(selection, steps, 100, samples)
    plan.check(20)
    assert np.sum(np.diff(plan.make().first_point)) == plan.points == 20
    with pytest.raises(QueryTooLarge, match="20 points, more than the 19"):
        plan.check(19)

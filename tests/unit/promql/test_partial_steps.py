"""Results that are sliced and joined by steps equal the results over all steps."""

from random import Random

import numpy as np
import pytest

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql.engine import prepare
from strandline.promql.evaluation.partial_steps import bytes_of, cells_in, join_steps, slice_steps
from strandline.promql.evaluation.partials import Partial, evaluate_partial, merged
from strandline.promql.plan.fragments import Fragment
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.values import STALE, Samples
from strandline.promql.windows import canonical_nans

pytestmark = pytest.mark.unit

STEP = 60_000
STEPS = 12
QUERIES = (
    "m",
    "rate(m[3m])",
    "rate({__name__='m'}[3m]) > 1",
    'rate({__name__=~"m|n_total"}[3m])',
    "quantile_over_time(3, m[2m])",
    "sum(m)",
    "sum by (x) (rate(m[3m]))",
    "avg by (x) (m)",
    "min without (y) (m)",
    "max(m)",
    "count by (y) (m)",
    "group by (x) (m)",
    "stddev by (x) (m)",
    "stdvar(m)",
    "topk(2, m)",
    "topk by (x) (1, rate(m[3m]))",
    "bottomk by (x) (3, m)",
    "quantile by (x) (0.5, m)",
    "quantile(2, m)",
    "sum(quantile_over_time(3, m[2m]))",
    'count_values("v", m)',
    'count_values by (x) ("v", m)',
)


def samples(draw: Random) -> Samples:
    """Samples of series with gaps. Integers, so that sums are exact."""
    keys, times, values, first = [], [], [], [0]
    for number in range(draw.randrange(1, 9)):
        labels = {"__name__": draw.choice(["m", "m", "n_total"]), "x": str(number % 3), "y": str(number)}
        first_step, duration = draw.randrange(STEPS), draw.randrange(STEPS)
        own = sorted(draw.sample(range(first_step * STEP, (first_step + duration + 1) * STEP, 1_000), 3 + 4 * duration))
        keys.append(encode_part_key(labels))
        times += own
        values += [draw.choice([float(STALE), float("nan"), *map(float, range(8))]) for _ in own]
        first.append(len(times))
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    data = np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8)
    return Samples(KeyBytes(offsets, data), np.array(first), np.array(times), canonical_nans(np.array(values)))


def evaluated(text: str, held: Samples, first: int, count: int) -> tuple[Fragment, Partial]:
    times = QueryTimes(first * STEP, (first + count - 1) * STEP, STEP, lookback=STEP)
    (fragment,) = prepare(text, times).fragments
    assert isinstance(fragment, Fragment)
    return fragment, evaluate_partial(fragment, held)


def finished(fragment: Fragment, partial: Partial) -> tuple[dict[bytes, list[int]], list[str]]:
    """The result by series, as bits."""
    vector, annotations = merged(fragment, [partial])
    rows = {vector.keys.key(position): row.view(np.int64).tolist() for position, row in enumerate(vector.values)}
    assert len(rows) == len(vector.keys)
    return rows, sorted(annotation.text for annotation in annotations)


@pytest.mark.parametrize("text", QUERIES)
def test_steps_from_several_results_are_those_of_one(text: str) -> None:
    draw = Random(text)  # noqa: S311 - the same each time
    for _ in range(40):
        held = samples(draw)
        whole, expected = evaluated(text, held, 5, STEPS)
        part, alone = evaluated(text, held, 5, STEPS - 5)
        # An earlier range, alone and moved, once or twice.
        _, earlier = evaluated(text, held, 0, STEPS)
        assert finished(part, slice_steps(part, earlier, 5)) == finished(part, alone)
        once = join_steps(whole, earlier, 5, evaluated(text, held, STEPS, 5)[1])
        assert finished(whole, once) == finished(whole, expected)
        between, _ = evaluated(text, held, 2, STEPS)
        moved = join_steps(between, earlier, 2, evaluated(text, held, STEPS, 2)[1])
        twice = join_steps(whole, moved, 3, evaluated(text, held, STEPS + 1, 4)[1])
        assert finished(whole, twice) == finished(whole, expected)


def test_series_without_remaining_samples_take_no_memory() -> None:
    draw = Random(1)  # noqa: S311 - the same each time
    for text in QUERIES:
        held = samples(draw)
        _, partial = evaluated(text, held, 0, STEPS)
        for first in range(1, 3 * STEPS):
            moved, _ = evaluated(text, held, first, STEPS)
            partial = join_steps(moved, partial, 1, evaluated(text, held, first + STEPS - 1, 1)[1])
        assert (cells_in(partial), list(partial.annotations)) == (0, []), text
        assert bytes_of(partial) < 100

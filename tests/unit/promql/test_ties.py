"""Equal values in topk and bottomk: which series are kept, and their order."""

from math import isnan, nan
from random import Random

import numpy as np
import pytest

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.aggregations import Accumulator, State, finish, merge
from strandline.promql.expressions import Aggregator
from strandline.promql.values import NO_SAMPLE, NO_SAMPLE_BITS, Vector

pytestmark = pytest.mark.unit

Series = tuple[str, str]
Rows = dict[Series, list[float]]
BLOCK = 7
RANKINGS = [(aggregator, steps) for aggregator in (Aggregator.TOPK, Aggregator.BOTTOMK) for steps in (1, 4)]


def some_rows(random: Random, steps: int) -> Rows:
    """Series of two groups with few values among them: NaN, none, and zeros of both signs."""
    values = (1.0, 2.0, 0.0, -0.0, nan, NO_SAMPLE)
    names = [(random.choice("ab"), f"{position:02}") for position in range(random.randrange(1, 30))]
    return {name: [random.choice(values) for _ in range(steps)] for name in names}


def vector(rows: list[tuple[Series, list[float]]]) -> Vector:
    keys = [encode_part_key({"group": group, "name": name}) for (group, name), _ in rows]
    offsets = np.cumsum([0, *map(len, keys)], dtype=np.int64)
    return Vector(
        KeyBytes(offsets, np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8)), np.array([row for _, row in rows])
    )


def is_there(value: float) -> bool:
    return np.float64(value).view(np.uint64) != NO_SAMPLE_BITS


def best(rows: Rows, spec: AggregationSpec, limit: int) -> list[list[Series]]:
    """The definition: at each step the best of each group, best first; of equal ones, the one with the first name."""
    sign = 1 if spec.aggregator is Aggregator.BOTTOMK else -1
    found = []
    for step in range(len(next(iter(rows.values())))):
        ranked = sorted(
            (group, isnan(row[step]), 0.0 if isnan(row[step]) else sign * row[step], name)
            for (group, name), row in rows.items()
            if is_there(row[step])
        )
        of_groups = [[(entry[0], entry[3]) for entry in ranked if entry[0] == group][:limit] for group in "ab"]
        found.append([series for of_group in of_groups for series in of_group])
    return found


def state_of(spec: AggregationSpec, steps: int, rows: list[tuple[Series, list[float]]]) -> State:
    accumulator = Accumulator(spec, steps)
    for first in range(0, len(rows), BLOCK):
        block = vector(rows[first : first + BLOCK])
        accumulator.add(block.keys, block.values)
    return accumulator.state()


def series_of(found: Vector) -> list[Series]:
    texts = [found.keys.key(position) for position in range(len(found.keys))]
    known = {
        encode_part_key({"group": group, "name": f"{name:02}"}): (group, f"{name:02}")
        for group in "ab"
        for name in range(30)
    }
    return [known[text] for text in texts]


@pytest.mark.parametrize(("aggregator", "steps"), RANKINGS)
def test_which_of_equal_series_are_kept_does_not_depend_on_their_split(aggregator: Aggregator, steps: int) -> None:
    """In blocks in random order, with 1, 2 and 5 shards."""
    random = Random(20261119)  # noqa: S311 - the same each time
    for _ in range(60):
        rows, limit = some_rows(random, steps), random.randrange(1, 6)
        spec = AggregationSpec(aggregator, ("group",), parameter=np.full(steps, float(limit)))
        wanted = best(rows, spec, limit)
        for shards in (1, 2, 5):
            listed = list(rows.items())
            random.shuffle(listed)
            found = finish(
                spec, merge(spec, steps, [state_of(spec, steps, listed[shard::shards]) for shard in range(shards)])
            )
            names = series_of(found)
            for step in range(steps):
                kept = [
                    name for name, value in zip(names, found.values[:, step].tolist(), strict=True) if is_there(value)
                ]
                assert sorted(kept) == sorted(wanted[step])
            assert steps > 1 or names == wanted[0], "group by group, the best first"

"""Vectors for aggregations, and their results for any division of the series."""

import math
import random
from collections.abc import Iterator

import numpy as np

from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.promql.aggregation.spec import AggregationSpec
from strandline.promql.aggregations import Accumulator, accumulate, aggregate, finish, merge
from strandline.promql.expressions import Aggregator
from strandline.promql.values import NO_SAMPLE, NO_SAMPLE_BITS, Vector

NAN, INF, MAX = math.nan, math.inf, 1.7e308
Labels = tuple[tuple[str, str], ...]
Cells = dict[Labels, list[float | None]]


def vector(*series: tuple[dict[str, str], list[float | None]]) -> Vector:
    keys = [encode_part_key(labels) for labels, _ in series]
    columns = KeyBytes(
        np.cumsum([0, *map(len, keys)], dtype=np.int64), np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8)
    )
    return Vector(columns, np.array([[NO_SAMPLE if v is None else v for v in values] for _, values in series]))


def column(*values: float | None) -> Vector:
    """Series i=00, i=01, ... at one step."""
    return vector(*(({"i": f"{i:02}"}, [value]) for i, value in enumerate(values)))


def cells(found: Vector) -> Cells:
    """The value at each step, or None, by label set. Series without samples are dropped; label sets are distinct."""
    result: Cells = {}
    for position in range(len(found.keys)):
        row = found.values[position]
        values = [
            None if bits == NO_SAMPLE_BITS else float(value)
            for value, bits in zip(row, row.view(np.uint64), strict=True)
        ]
        labels = tuple(decode_part_key(found.keys.key(position)).items())
        assert labels not in result
        if any(value is not None for value in values):
            result[labels] = values
    return result


def spec_of(aggregator: Aggregator, steps: int = 1, parameter: float | str | None = None, *by: str) -> AggregationSpec:
    given = np.full(steps, parameter) if isinstance(parameter, int | float) else parameter
    return AggregationSpec(aggregator, by, parameter=given)


def some_vector(source: random.Random, series: int, steps: int, *, few_values: bool = False) -> Vector:
    def value() -> float | None:
        if source.random() < 0.2:
            return None
        return float(source.randrange(4)) if few_values else source.uniform(-1, 1) * 10 ** source.randrange(12)

    return vector(
        *(
            ({"__name__": "m", "i": str(i), "job": str(source.randrange(5))}, [value() for _ in range(steps)])
            for i in range(series)
        )
    )


def parts_of(source: random.Random, all_series: Vector) -> Iterator[Vector]:
    """The series in random order, in parts of random sizes."""
    order = list(range(len(all_series.keys)))
    source.shuffle(order)
    while order:
        size = source.randrange(1, 20)
        rows = np.array(order[:size])
        del order[:size]
        yield Vector(take_keys(all_series.keys, rows), np.ascontiguousarray(all_series.values[rows]))


def all_evaluations(spec: AggregationSpec, source: random.Random, all_series: Vector) -> Iterator[Cells]:
    """The result computed at once, block by block, and by merging states."""
    steps = all_series.values.shape[1]
    yield cells(aggregate(spec, all_series))
    accumulator = Accumulator(spec, steps)
    for part in parts_of(source, all_series):
        accumulator.add(part.keys, part.values)
    yield cells(finish(spec, accumulator.state()))
    states = [accumulate(spec, part) for part in parts_of(source, all_series)]
    yield cells(finish(spec, merge(spec, steps, states)))

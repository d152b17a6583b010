"""Quantiles and fractions of classic histograms: examples, and comparison with a model in plain Python."""

import math
import random
from bisect import bisect_left

import numpy as np
import pytest

from strandline.arrays import F64s
from strandline.index.documents import decode_part_key, encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql.annotations import Annotations
from strandline.promql.arithmetic import missing
from strandline.promql.classic_histograms import histogram_fraction, histogram_quantile, parse_bound
from strandline.promql.errors import EvaluationError
from strandline.promql.values import NO_SAMPLE, Grid, Vector

pytestmark = pytest.mark.unit

INF, NAN = math.inf, math.nan
Labels = dict[str, str]


def buckets(*series: tuple[Labels, list[float | None]]) -> Vector:
    parts = [encode_part_key(labels) for labels, _ in series]
    data = np.frombuffer(bytearray(b"".join(parts)), dtype=np.uint8)
    rows = [[NO_SAMPLE if count is None else count for count in counts] for _, counts in series]
    keys = KeyBytes(np.cumsum([0, *map(len, parts)], dtype=np.int64), data)
    return Vector(keys, np.array(rows, dtype=np.float64).reshape(len(series), -1))


def histogram(
    counts: dict[str, float | None], steps: int = 1, **labels: str
) -> list[tuple[Labels, list[float | None]]]:
    return [({"__name__": "x_bucket", "le": bound, **labels}, [count] * steps) for bound, count in counts.items()]


def grid(steps: int) -> Grid:
    return Grid(60_000, 15_000, steps)


def quantiles(found: Vector, *levels: float) -> tuple[Vector, Annotations]:
    # One step for each.
    values = np.repeat(found.values, len(levels), axis=1) if found.values.shape[1] == 1 else found.values
    return histogram_quantile(np.array(levels, dtype=np.float64), Vector(found.keys, values), grid(len(levels)))


def row(found: Vector) -> list[float]:
    assert found.values.shape[0] == 1
    values: list[float] = found.values[0].tolist()
    return values


def same(found: list[float], expected: list[float]) -> bool:
    return np.allclose(found, expected, rtol=1e-14, atol=0, equal_nan=True)


FOUR = {"0.1": 10.0, "0.2": 30.0, "1": 40.0, "+Inf": 50.0}


def test_quantiles_are_linear_inside_of_a_bucket() -> None:
    found, annotations = quantiles(buckets(*histogram(FOUR, job="a")), 0, 0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 0.81, 1)
    assert decode_part_key(found.keys.key(0)) == {"job": "a"}
    # The highest bucket has no width: a quantile in it is the lower bound.
    assert same(row(found), [0, 0.05, 0.1, 0.175, 0.2, 0.6, 1, 1, 1])
    assert not annotations


def test_quantiles_out_of_range_are_infinite_with_a_warning() -> None:
    found, annotations = quantiles(buckets(*histogram({"1": 2.0})), -1, 2, NAN, 0.5)
    # There is no +Inf bucket either.
    assert same(row(found), [-INF, INF, NAN, NAN])
    assert [item.text for item in annotations] == [
        f"quantile value should be between 0 and 1, got {shown}" for shown in ("-1", "2", "NaN")
    ]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"+Inf": 5.0}, NAN),
        ({"1": 0.0, "+Inf": 0.0}, NAN),
        ({"1": 5.0, "2": 5.0}, NAN),
        ({"-2": 4.0, "-1": 6.0, "+Inf": 6.0}, -2.0),
        ({"-2": 1.0, "-1": 5.0, "+Inf": 6.0}, -1.5),
        ({"0": 4.0, "+Inf": 6.0}, 0.0),
        ({"2": 6.0, "+Inf": 6.0}, 1.0),
        ({"1": 2.0, "1.0": 2.0, "2": 4.0, "+Inf": 4.0}, 0.5),
        ({"1": NAN, "2": 4.0, "+Inf": 4.0}, NAN),
    ],
    ids=["one bucket", "no observations", "no +Inf", "below 0", "negative", "at 0", "from 0", "equal bounds", "NaN"],
)
def test_medians(counts: dict[str, float | None], expected: float) -> None:
    assert same(row(quantiles(buckets(*histogram(counts)), 0.5)[0]), [expected])


def test_counts_are_made_monotonic_with_an_annotation() -> None:
    falling = buckets(*histogram({"1": 10.0, "2": 8.0, "4": 5.0, "+Inf": 20.0}, 3))
    falling.values[1:3, 1] = 15.0
    found, annotations = quantiles(falling, 0.5, 0.5, 0.75)
    assert same(row(found), [1, 1, 4])
    (info,) = annotations
    assert "needed to be fixed for monotonicity" in info.text
    assert info.forced is not None
    assert (info.forced.min_bucket, info.forced.max_bucket, info.forced.max_difference) == (2, 4, 5)
    # Steps 0 and 2 of a grid from 60 s on, 15 s apart.
    assert (info.forced.min_time, info.forced.max_time, info.forced.count) == (60_000, 90_000, 2)


def test_rounding_differences_are_removed_without_an_annotation() -> None:
    found, annotations = quantiles(buckets(*histogram({"1": 1.0, "2": 1 - 1e-13, "4": 1 + 1e-13, "+Inf": 1.0})), 1)
    assert same(row(found), [1])
    assert not annotations


def test_malformed_bounds_are_ignored_with_a_warning_if_they_have_samples() -> None:
    some = [*histogram({"1": 2.0, "+Inf": 2.0, "wide": 1.0, "1e999": None}), ({"__name__": "x_bucket"}, [7.0])]
    found, annotations = quantiles(buckets(*some), 0.5)
    assert same(row(found), [0.5])
    assert [item.text for item in annotations] == [
        'bucket label "le" is missing or has a malformed value of "wide"',
        'bucket label "le" is missing or has a malformed value of ""',
    ]
    _, of_fraction = histogram_fraction(np.zeros(1), np.ones(1), buckets(*some))
    assert of_fraction == annotations


def test_a_histogram_has_a_value_at_steps_where_a_bucket_has_a_sample() -> None:
    some = buckets(*histogram({"1": 2.0, "+Inf": 4.0}, 3))
    some.values[0, 1] = some.values[:, 2] = NO_SAMPLE
    found, _ = quantiles(some, 0.25, 0.25, 0.25)
    assert missing(found.values).tolist() == [[False, False, True]]
    assert same(row(found)[:2], [0.5, NAN])


def test_metrics_that_are_equal_without_names_are_an_error_where_both_have_samples() -> None:
    one, other = histogram({"1": 2.0, "+Inf": 4.0}, 2), histogram({"1": 4.0, "+Inf": 4.0}, 2, __name__="y_bucket")
    both = buckets(*one, *other)
    with pytest.raises(EvaluationError, match="same labelset"):
        quantiles(both, 0.25, 0.25)
    both.values[:2, 0] = both.values[2:, 1] = NO_SAMPLE
    assert same(row(quantiles(both, 0.25, 0.25)[0]), [0.25, 0.5])


def test_without_buckets_the_result_is_empty() -> None:
    none = Vector(KeyBytes(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)), np.empty((0, 2)))
    assert len(histogram_quantile(np.array([0.5, 2]), none, grid(2))[0].keys) == 0
    assert len(histogram_fraction(np.zeros(2), np.ones(2), none)[0].keys) == 0


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        (0, 0.2, 0.6),
        (0, 0.15, 0.4),
        (0.15, 0.6, 0.3),
        (-INF, INF, 1),
        (-INF, 0.1, 0.2),
        (0.1, INF, 0.8),
        (2, 3, 0),
        (1, INF, 0.2),
        (0.5, 0.5, 0),
        (0.7, 0.5, 0),
        (NAN, 1, NAN),
        (0, NAN, NAN),
    ],
)
def test_fractions_are_linear_inside_of_a_bucket(lower: float, upper: float, expected: float) -> None:
    found, _ = histogram_fraction(np.full(1, float(lower)), np.full(1, float(upper)), buckets(*histogram(FOUR)))
    assert np.allclose(row(found), [expected], rtol=1e-14, atol=1e-15, equal_nan=True)


def test_a_bucket_with_a_lower_bound_of_minus_infinity_counts_in_full() -> None:
    below_zero = buckets(*histogram({"-1": 4.0, "1": 8.0, "+Inf": 8.0}))
    found, _ = histogram_fraction(np.array([-5.0]), np.array([0.0]), below_zero)
    assert same(row(found), [0.25])
    without_end = buckets(*histogram({"-1": 4.0, "1": 8.0}))
    assert same(row(histogram_fraction(np.zeros(1), np.ones(1), without_end)[0]), [NAN])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5", 0.5),
        ("+5", 5.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1_000", 1000.0),
        ("0x1p-2", 0.25),
        ("0x_1p3", 8.0),
        ("inf", INF),
        ("-Infinity", -INF),
        ("NaN", NAN),
        ("", None),
        (" 1", None),
        ("1 ", None),
        ("+nan", None),
        ("1e400", None),
        ("0x1p5000", None),
        ("0x1", None),
        ("1__0", None),
        ("1_.5", None),
        (".", None),
        ("\u0661", None),
        ("infinit", None),
    ],
)
def test_bounds_are_parsed_as_go_parses_them(text: str, expected: float | None) -> None:
    found = parse_bound(text)
    assert found == expected or (expected is not None and found is not None and math.isnan(found + expected))


def modelled(levels: float, counts: list[tuple[float, float]]) -> float:
    """The quantile of valid buckets, the last one +Inf, by definition, with counts raised to the maximum so far."""
    bounds = [bound for bound, _ in counts]
    raised: F64s = np.maximum.accumulate([count for _, count in counts])
    rank = levels * raised[-1]
    position = bisect_left(raised.tolist(), rank)
    # Without observations, or where the first bucket can't be interpolated.
    if raised[-1] == 0 or (position == 0 and raised[0] == 0 and bounds[0] > 0):
        return NAN
    if position == len(bounds) - 1:
        return bounds[-2]
    if position == 0:
        return bounds[0] * rank / raised[0] if bounds[0] > 0 else bounds[0]
    share = (rank - raised[position - 1]) / (raised[position] - raised[position - 1])
    return float(bounds[position - 1] + (bounds[position] - bounds[position - 1]) * share)


def test_many_histograms_agree_with_the_model() -> None:
    generator = random.Random(7)  # noqa: S311 - the same each time
    histograms = []
    for number in range(40):
        bounds = [*sorted(generator.sample(range(-3, 20), generator.randint(1, 6))), INF]
        histograms.append(
            (str(number), [(float(bound), [float(generator.randint(0, 9)) for _ in range(6)]) for bound in bounds])
        )
    series = [
        ({"le": "+Inf" if bound == INF else str(bound), "number": number}, list[float | None](counts))
        for number, found in histograms
        for bound, counts in found
    ]
    generator.shuffle(series)
    levels = [0, 0.2, 0.5, 0.77, 0.99, 1]
    found, _ = histogram_quantile(np.array(levels, dtype=np.float64), buckets(*series), grid(6))
    by_number = {
        decode_part_key(found.keys.key(position))["number"]: found.values[position].tolist() for position in range(40)
    }
    for number, expected in histograms:
        model = [modelled(levels[step], [(bound, counts[step]) for bound, counts in expected]) for step in range(6)]
        assert same(by_number[number], model), expected

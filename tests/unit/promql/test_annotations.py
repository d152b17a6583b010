import math

import numpy as np
import pytest

from strandline.promql.annotations import (
    NONE,
    Annotations,
    ForcedMonotonicity,
    bad_bucket_label,
    forced_monotonicity,
    invalid_quantile,
    invalid_quantiles,
    invalid_ratio,
    is_counter_name,
    possible_non_counter,
    sort_in_range_query,
)
from strandline.promql.expressions import Span
from strandline.promql.values import NO_SAMPLE

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("quantile", "shown"),
    [
        (2.0, "2"),
        (-0.5, "-0.5"),
        (math.nan, "NaN"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (999999.0, "999999"),
        (1e6, "1e+06"),
        (1234567.0, "1.234567e+06"),
        (-0.0001, "-0.0001"),
        (-0.000025, "-2.5e-05"),
        (1e100, "1e+100"),
    ],
)
def test_numbers_are_shown_as_prometheus_shows_them(quantile: float, shown: str) -> None:
    found = invalid_quantile(quantile, Span(19, 20)).shown("quantile_over_time(2, x[5m])")
    assert found == f"PromQL warning: quantile value should be between 0 and 1, got {shown} (1:20)"


def test_a_position_is_a_line_and_a_column_in_bytes() -> None:
    query = 'sum(\n  {"größe"} +\n sort(x))'
    found = sort_in_range_query(Span(query.index("sort"), query.index("))"))).shown(query)
    text = "PromQL warning: sort is ineffective for range queries since results are always ordered by labels"
    assert found == f"{text} (3:2)"
    assert sort_in_range_query(Span(query.index("+"), 0)).shown(query) == f"{text} (2:15)"
    assert sort_in_range_query().shown(query) == text


def test_names_are_quoted_as_go_quotes_them() -> None:
    found = possible_non_counter('a"\\\n\x01é\u200b\U000e0001').shown("")
    assert found == (
        "PromQL info: metric might not be a counter, name does not end in _total/_sum/_count/_bucket: "
        r'"a\"\\\n\x01é\u200b\U000e0001"'
    )


def test_texts_of_other_annotations() -> None:
    assert bad_bucket_label("wide").shown("") == (
        'PromQL warning: bucket label "le" is missing or has a malformed value of "wide"'
    )
    assert bad_bucket_label("", "x").text.endswith('malformed value of "" for metric name "x"')
    assert invalid_ratio(-2, -1).text == "ratio value should be between -1 and 1, got -2, capping to -1"


def test_names_of_counters() -> None:
    assert all(map(is_counter_name, ["a_total", "a_sum", "a_count", "a_bucket", ""]))
    assert not any(map(is_counter_name, ["up", "total", "a_total_bytes"]))


def test_each_text_occurs_once_with_its_last_position() -> None:
    one, two = Annotations([invalid_quantile(2, Span(1, 2))]), Annotations([invalid_quantile(2, Span(5, 6))])
    other = Annotations([possible_non_counter("up")])
    merged = one | other | two | NONE
    assert merged.warnings("quantile") == ["PromQL warning: quantile value should be between 0 and 1, got 2 (1:6)"]
    assert len(merged.infos("quantile")) == 1
    assert merged
    assert not NONE
    assert not NONE | Annotations()


def test_forced_monotonicity_is_merged() -> None:
    found = [
        forced_monotonicity(ForcedMonotonicity(1_000, 1_000, 0.5, 10.0, 2.0), "x", Span(0, 1)),
        forced_monotonicity(ForcedMonotonicity(61_000, 61_000, 1.0, math.inf, 0.123), "x", Span(0, 1)),
    ]
    merged = Annotations(found[:1]) | Annotations(found[1:])
    expected = (
        "PromQL info: input to histogram_quantile needed to be fixed for monotonicity (see "
        "https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile) "
        'for metric name "x", from buckets 0.5 to +Inf, with a max diff of 2, over 2 samples '
        "from 1970-01-01T00:00:01Z to 1970-01-01T00:01:01Z (1:1)"
    )
    assert merged.infos("x") == [expected]


def test_annotations_above_the_limit_are_omitted() -> None:
    many = Annotations(invalid_quantile(number) for number in range(2, 15))
    shown = many.warnings("", 10)
    assert len(shown) == 11
    assert shown[-1] == "3 more warning annotations omitted"
    assert len(many.warnings("")) == 13
    assert Annotations(list(many)[:10]).warnings("", 10)[-1].endswith("got 11")


def test_a_bad_quantile_counts_only_at_steps_that_have_a_value() -> None:
    quantiles = np.array([0.5, 2.0, math.nan, math.nan, -1.0])
    values = np.array([[1.0, math.inf, math.nan, NO_SAMPLE, NO_SAMPLE]])
    found = invalid_quantiles(quantiles, values, Span(0, 1))
    assert [item.text[-3:] for item in found] == ["t 2", "NaN"]
    assert invalid_quantiles(quantiles[:1], values[:, :1]) is NONE

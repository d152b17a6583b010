"""The table of functions: names, types and summaries for the documentation. The evaluation has tables of its own, with
the same names as keys (`windows`, `elementwise`, `evaluation.calls`).
"""

from dataclasses import dataclass
from typing import Final

from strandline.promql.value_types import ValueType


@dataclass(frozen=True, slots=True)
class Function:
    """A function of PromQL. The last `optional` parameters may be left out. With `is_variadic`, the last parameter may
    occur any number of times, including zero. The parser rejects functions that are `is_experimental`, by name.
    """

    name: str
    parameters: tuple[ValueType, ...]
    returns: ValueType
    summary: str
    optional: int = 0
    is_variadic: bool = False
    is_experimental: bool = False
    is_for_histograms: bool = False
    """Only for native histograms, which are not stored: the result is always empty."""


_S, _V, _M, _T = ValueType.SCALAR, ValueType.VECTOR, ValueType.MATRIX, ValueType.STRING

_TABLE = (
    Function("abs", (_V,), _V, "Absolute value"),
    Function("absent", (_V,), _V, "1 if there is no series, with the labels of the selector's equality matchers"),
    Function(
        "absent_over_time",
        (_M,),
        _V,
        "1 if there is no sample in the range, with the labels of the selector's equality matchers",
    ),
    Function("acos", (_V,), _V, "Arc cosine"),
    Function("acosh", (_V,), _V, "Inverse hyperbolic cosine"),
    Function("asin", (_V,), _V, "Arc sine"),
    Function("asinh", (_V,), _V, "Inverse hyperbolic sine"),
    Function("atan", (_V,), _V, "Arc tangent"),
    Function("atanh", (_V,), _V, "Inverse hyperbolic tangent"),
    Function("avg_over_time", (_M,), _V, "Average of the samples in the range"),
    Function("ceil", (_V,), _V, "Rounded up to the next integer"),
    Function("changes", (_M,), _V, "How often the value changed in the range"),
    Function("clamp", (_V, _S, _S), _V, "Limited to a minimum and a maximum"),
    Function("clamp_max", (_V, _S), _V, "Limited to a maximum"),
    Function("clamp_min", (_V, _S), _V, "Limited to a minimum"),
    Function("cos", (_V,), _V, "Cosine"),
    Function("cosh", (_V,), _V, "Hyperbolic cosine"),
    Function("count_over_time", (_M,), _V, "Number of samples in the range"),
    Function("day_of_month", (_V,), _V, "Day of the month of a time in UTC, from 1", optional=1),
    Function("day_of_week", (_V,), _V, "Day of the week of a time in UTC; 0 is Sunday", optional=1),
    Function("day_of_year", (_V,), _V, "Day of the year of a time in UTC, from 1", optional=1),
    Function("days_in_month", (_V,), _V, "Days of the month of a time in UTC", optional=1),
    Function("deg", (_V,), _V, "Radians to degrees"),
    Function(
        "delta", (_M,), _V, "Difference between the last and the first value of the range, extrapolated; for gauges"
    ),
    Function("deriv", (_M,), _V, "Derivative per second by linear regression; for gauges"),
    Function(
        "double_exponential_smoothing",
        (_M, _S, _S),
        _V,
        "Smoothed value of the range by a level and a trend factor; for gauges",
        is_experimental=True,
    ),
    Function("end", (), _S, "End of the query", is_experimental=True),
    Function("exp", (_V,), _V, "e to the power of the value"),
    Function("first_over_time", (_M,), _V, "Oldest sample in the range"),
    Function("floor", (_V,), _V, "Rounded down to the next integer"),
    Function("histogram_avg", (_V,), _V, "Average of a native histogram", is_for_histograms=True),
    Function("histogram_count", (_V,), _V, "Number of observations of a native histogram", is_for_histograms=True),
    Function("histogram_fraction", (_S, _S, _V), _V, "Fraction of observations between two values"),
    Function("histogram_quantile", (_S, _V), _V, "Quantile of a histogram"),
    Function(
        "histogram_quantiles",
        (_V, _T, _S, _S),
        _V,
        "Several quantiles of a histogram, with the quantile as a label",
        is_variadic=True,
        is_experimental=True,
    ),
    Function("histogram_stddev", (_V,), _V, "Standard deviation of a native histogram", is_for_histograms=True),
    Function("histogram_stdvar", (_V,), _V, "Variance of a native histogram", is_for_histograms=True),
    Function("histogram_sum", (_V,), _V, "Sum of the observations of a native histogram", is_for_histograms=True),
    Function("hour", (_V,), _V, "Hour of a time in UTC", optional=1),
    Function("idelta", (_M,), _V, "Difference between the last two samples of the range; for gauges"),
    Function("increase", (_M,), _V, "Increase of a counter over the range, extrapolated"),
    Function("info", (_V, _V), _V, "Adds the labels of info metrics", optional=1, is_experimental=True),
    Function("irate", (_M,), _V, "Increase of a counter per second by the last two samples"),
    Function("label_join", (_V, _T, _T, _T), _V, "Sets a label to the values of others, joined", is_variadic=True),
    Function("label_replace", (_V, _T, _T, _T, _T), _V, "Sets a label from another one by a regular expression"),
    Function("last_over_time", (_M,), _V, "Newest sample in the range"),
    Function("ln", (_V,), _V, "Natural logarithm"),
    Function("log10", (_V,), _V, "Logarithm to the base 10"),
    Function("log2", (_V,), _V, "Logarithm to the base 2"),
    Function("mad_over_time", (_M,), _V, "Median absolute deviation in the range", is_experimental=True),
    Function("max_of", (_S, _S), _S, "Larger of two scalars", is_experimental=True),
    Function("max_over_time", (_M,), _V, "Largest sample in the range"),
    Function("min_of", (_S, _S), _S, "Smaller of two scalars", is_experimental=True),
    Function("min_over_time", (_M,), _V, "Smallest sample in the range"),
    Function("minute", (_V,), _V, "Minute of a time in UTC", optional=1),
    Function("month", (_V,), _V, "Month of a time in UTC, from 1", optional=1),
    Function("pi", (), _S, "The number pi"),
    Function("predict_linear", (_M, _S), _V, "Value after a number of seconds by linear regression; for gauges"),
    Function("present_over_time", (_M,), _V, "1 for each series with a sample in the range"),
    Function("quantile_over_time", (_S, _M), _V, "Quantile of the samples in the range"),
    Function("rad", (_V,), _V, "Degrees to radians"),
    Function("range", (), _S, "Length of the query", is_experimental=True),
    Function("rate", (_M,), _V, "Increase of a counter per second over the range, extrapolated"),
    Function("resets", (_M,), _V, "How often a counter was reset in the range"),
    Function("round", (_V, _S), _V, "Rounded to the nearest multiple, of 1 unless given", optional=1),
    Function("scalar", (_V,), _S, "The value of the only series; NaN if there is not exactly one"),
    Function("sgn", (_V,), _V, "Sign: 1, 0 or -1"),
    Function("sin", (_V,), _V, "Sine"),
    Function("sinh", (_V,), _V, "Hyperbolic sine"),
    Function("sort", (_V,), _V, "In rising order of values; instant queries only"),
    Function("sort_by_label", (_V, _T), _V, "In the order of labels", is_variadic=True, is_experimental=True),
    Function(
        "sort_by_label_desc", (_V, _T), _V, "In the reverse order of labels", is_variadic=True, is_experimental=True
    ),
    Function("sort_desc", (_V,), _V, "In falling order of values; instant queries only"),
    Function("sqrt", (_V,), _V, "Square root"),
    Function("start", (), _S, "Start of the query", is_experimental=True),
    Function("start_timestamp", (_V,), _V, "When the counter behind the sample was started", is_experimental=True),
    Function("stddev_over_time", (_M,), _V, "Standard deviation of the samples in the range"),
    Function("stdvar_over_time", (_M,), _V, "Variance of the samples in the range"),
    Function("step", (), _S, "Step of the query", is_experimental=True),
    Function("sum_over_time", (_M,), _V, "Sum of the samples in the range"),
    Function("tan", (_V,), _V, "Tangent"),
    Function("tanh", (_V,), _V, "Hyperbolic tangent"),
    Function("time", (), _S, "The evaluation time in seconds since the epoch"),
    Function("timestamp", (_V,), _V, "The time of each sample in seconds since the epoch"),
    Function("ts_of_first_over_time", (_M,), _V, "Time of the oldest sample in the range", is_experimental=True),
    Function("ts_of_last_over_time", (_M,), _V, "Time of the newest sample in the range", is_experimental=True),
    Function("ts_of_max_over_time", (_M,), _V, "Time of the largest sample in the range", is_experimental=True),
    Function("ts_of_min_over_time", (_M,), _V, "Time of the smallest sample in the range", is_experimental=True),
    Function("vector", (_S,), _V, "A scalar as a vector of one series without labels"),
    Function("year", (_V,), _V, "Year of a time in UTC", optional=1),
)

FUNCTIONS: Final = {function.name: function for function in _TABLE}
"""All functions of Prometheus 3.15 by name. Names are case-sensitive."""

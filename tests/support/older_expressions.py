"""Random expressions with the same result in Prometheus 2.42, which Debian has, and 3.15, and data for them.

2.42 differs in windows, which include the sample at their beginning; in rates near zero; in sums, which it does not
compensate; and in unknown features, such as numbers as durations. So samples are never at the edge of a window,
counters are far from zero, and values are whole numbers. Inexact results, such as a rate or a mean, are never compared,
rounded, subtracted or divided by: a difference in the last bit would become visible.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import numpy as np

from strandline.promql.functions import FUNCTIONS, Function
from strandline.promql.value_types import ValueType
from support.promql_expressions import ExpressionGenerator, Vocabulary

Series = tuple[dict[str, str], list[tuple[int, float]]]
MINUTE = 60_000
# Every time of a query, including offsets and ranges, is 11 seconds after a multiple of 15 seconds.
START = 1_700_000_040_000
NOW = START + 11_000
LENGTH = 90 * MINUTE
WORDS = Vocabulary(
    metrics=(
        *("requests_total", "errors_total", "temperature", "size_bytes", "build_info", "latency_bucket", "odd_values"),
    ),
    labels={
        "job": ("a", "b"),
        "instance": ("1", "2", "3"),
        "le": ("1", "2", "+Inf"),
        "version": ("v1", "v2"),
    },
    durations=("1m", "5m", "90s", "7m30s", "20m"),
    moments=(f"{NOW // 1000 - 600}", f"{NOW // 1000 + 1800}", "start()", "end()"),
    label_values=("new", "ü", ""),
)
_COUNTERS = ("requests_total", "errors_total", "latency_bucket")
_STALE = float(np.uint64(0x7FF0000000000002).view(np.float64))
# No subnormal numbers, of which Go computes wrong logarithms.
_ODD = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 3e-308)
_NUMBERS = ("0", "1", "2", "-1", "10", "1e3", "0x1F", "Inf", "-Inf", "NaN")
# The numbers of series are whole, so that their mean is one of a few values.
_EXACT_FUNCTIONS = frozenset(
    {
        *("abs", "absent", "absent_over_time", "ceil", "changes", "clamp", "clamp_max", "clamp_min", "count_over_time"),
        *("floor", "idelta", "label_join", "label_replace", "last_over_time", "max_over_time", "min_over_time"),
        *("present_over_time", "resets", "round", "sgn", "sort", "sort_desc", "sum_over_time", "vector"),
        *("day_of_month", "day_of_week", "day_of_year", "days_in_month", "hour", "minute", "month", "year"),
    }
)
# With a number that is off by a bit, they may have a very different result.
_STEEP_FUNCTIONS = frozenset(
    {
        *("acos", "acosh", "asin", "atanh", "ceil", "changes", "cos", "day_of_month", "day_of_week", "day_of_year"),
        *("days_in_month", "deriv", "exp", "floor", "histogram_quantile", "hour", "idelta", "ln", "log10", "log2"),
        *("minute", "month", "predict_linear", "resets", "round", "sgn", "sin", "sqrt", "tan", "year", "clamp"),
        *("cosh", "sinh", "delta", "irate", "timestamp", "clamp_max", "clamp_min", "stddev_over_time"),
        *("stdvar_over_time", "quantile_over_time", "sort", "sort_desc"),
    }
)
_UNKNOWN_FUNCTIONS = frozenset(
    {
        *("first_over_time", "histogram_avg", "histogram_count", "histogram_fraction", "histogram_quantile"),
        *("histogram_stddev", "histogram_stdvar", "histogram_sum", "rate", "increase"),
    }
)
_FUNCTIONS = tuple(
    function
    for function in FUNCTIONS.values()
    if function.returns is ValueType.VECTOR and not function.is_experimental and function.name not in _UNKNOWN_FUNCTIONS
)
_COMPARISONS = ("==", "!=", ">", "<", ">=", "<=")
_SHARED = ("job", "instance", "job, instance")
_EXACT_AGGREGATORS = ("sum", "min", "max", "count", "group")
_OTHER_AGGREGATORS = ("avg", "stddev", "stdvar")


@dataclass(slots=True)
class OlderExpressions(ExpressionGenerator):
    """Expressions that both versions know. While `_exact`, values are whole numbers or equal in all bits."""

    duration_arithmetic: bool = False
    _exact: bool = False
    _in_subquery: bool = False

    def scalar(self, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.6:
            return self.random.choice(_NUMBERS)
        if self.random.random() < 0.3:
            return self.random.choice(("time()", "pi()"))
        with self._only(exact=True):
            return f"scalar({self.vector(depth - 1)})"

    def matrix(self, depth: int) -> str:
        if depth <= 0 or self._in_subquery or self.random.random() < 0.7:
            return self._modified(f"{self._selector()}[{self._duration()}]")
        self._in_subquery = True
        inner = self.vector(depth - 1)
        self._in_subquery = False
        return self._modified(f"({inner})[{self._duration()}:{self.random.choice(('', '15s', '1m', '150s'))}]")

    @contextmanager
    def _only(self, *, exact: bool) -> Iterator[None]:
        before = self._exact
        self._exact = before or exact
        yield
        self._exact = before

    def _selector(self) -> str:
        if self.random.random() < 0.2:
            return super(OlderExpressions, self)._selector()
        matchers = ("", "", "", "job='a'", "job=~'a|b'", "instance!='2'", "instance=~'1|2'", "job='b',instance=~'.+'")
        chosen = self.random.choice(matchers)
        return self.random.choice(self.words.metrics) + (f"{{{chosen}}}" if chosen else "")

    def _enclosed(self, depth: int) -> str:
        # Series that become equal without their names, but never at the same step: 2.42 refuses them, 3.15 merges them.
        return f"({self.vector(depth)})" if self.random.random() < 0.7 else f"-{self._modified(self._selector())}"

    def _joined(self) -> str:
        """Series with common labels."""
        sides = []
        for _ in range(2):
            selector = self._modified(self._selector())
            aggregated = f"{self.random.choice(_EXACT_AGGREGATORS)} by ({self.random.choice(_SHARED)}) ({selector})"
            sides.append(
                self.random.choice((selector, selector, aggregated, f"last_over_time({self._selector()}[5m])"))
            )
        on = self.random.choice(
            ("", *(f"on ({labels}) " for labels in _SHARED), "ignoring (le) ", "ignoring (le, version) ")
        )
        operator = self.random.choice((*_COMPARISONS, "+", "-", "*", "%", "and", "or", "unless"))
        if on and operator not in ("and", "or", "unless"):
            on += self.random.choice(("", "group_left () ", "group_right () ", "group_left (version) "))
            is_single = operator in _COMPARISONS and "group" not in on
            operator += " bool" if is_single else self._bool(operator)
        return f"{sides[0]} {operator} {on}{sides[1]}"

    def _call(self, depth: int) -> str:
        if self.random.random() < 0.2 and not self._exact:
            return self._of_counters(depth)
        functions = [one for one in _FUNCTIONS if one.name in _EXACT_FUNCTIONS] if self._exact else _FUNCTIONS
        function = self.random.choice(functions)
        with self._only(exact=function.name in _STEEP_FUNCTIONS):
            return self._called(function, depth)

    def _called(self, function: Function, depth: int) -> str:
        parameters = list(function.parameters)
        if function.optional and self.random.random() < 0.5:
            parameters = parameters[: -function.optional]
        if function.is_variadic:
            parameters += parameters[-1:] * self.random.randrange(3)
        return f"{function.name}({', '.join([self._argument(function, wanted, depth) for wanted in parameters])})"

    def _argument(self, function: Function, wanted: ValueType, depth: int) -> str:
        if wanted is ValueType.MATRIX and ValueType.SCALAR in function.parameters:
            # At later steps of a range query, 2.42 moves a window that is pinned by @.
            return f"{self._selector()}[{self._duration()}]"
        return super(OlderExpressions, self)._argument(function, wanted, depth)

    def _of_counters(self, depth: int) -> str:
        function = self.random.choice(("rate", "increase"))
        selector = self.random.choice(_COUNTERS) + self.random.choice(("", "{job='a'}", "{instance!='1'}"))
        rates = f"{function}({self._modified(f'{selector}[{self._duration()}]')})"
        if depth > 0 and "latency" in selector:
            by = self.random.choice(("le", "job, le", "instance, le"))
            return f"histogram_quantile({self.random.choice(('0', '0.5', '0.9', '2'))}, sum by ({by}) ({rates}))"
        return rates

    def _aggregation(self, depth: int) -> str:
        match self.random.randrange(8):
            case 0 if not self._exact:
                name, body = (
                    "quantile",
                    f"({self.random.choice(('0', '0.25', '0.5', '1', '7'))}, {self._steady(depth)})",
                )
            case 1:
                # The last of all labels: 2.42 loses those after it. And -0 becomes 0, which is the sum of -0 in 3.15
                # but not in 2.42.
                name, body = "count_values", f'("zone", ({self._steady(depth)}) + 0)'
            case 2:
                # All its values differ: which of several equal ones is selected is not defined.
                name = self.random.choice(("topk", "bottomk"))
                body = f"({self.random.choice(('1', '2', '0', '5'))}, {self._modified('size_bytes')})"
            case 3 if not self._exact:
                # Of finite values: for others, the deviations of 2.42 depend on their order.
                metric = self.random.choice(("temperature", "size_bytes", *_COUNTERS))
                name, body = self.random.choice(_OTHER_AGGREGATORS), f"({self._modified(metric)})"
            case _:
                name, body = self.random.choice(_EXACT_AGGREGATORS), f"({self.vector(depth)})"
        if self.random.random() < 0.4:
            return f"{name}{body}"
        return f"{name} {self.random.choice(('by', 'without'))} ({self._labels()}) {body}"

    def _steady(self, depth: int) -> str:
        with self._only(exact=True):
            return self.vector(depth)

    def _binary(self, depth: int) -> str:
        kind = self.random.randrange(6)
        if kind > 3:
            return f"({self._joined()})"
        if kind == 0:
            return self._with_number(depth)
        if kind == 1:
            operator = self.random.choice(("and", "or", "unless"))
            return f"({self.vector(depth)}) {operator} {self._on()}({self.vector(depth)})"
        with self._only(exact=True):
            operator, matching = self._operator(), self._on()
            if matching and self.random.random() < 0.4:
                matching += f"group_{self.random.choice(('left', 'right'))} ({self.random.choice(('', 'extra'))}) "
            # What a comparison filters out counts as a match in 3.15, but not in 2.42: several of them are an error.
            is_single = operator in _COMPARISONS and bool(matching) and "group" not in matching
            operator += " bool" if is_single else self._bool(operator)
            left, right = self.vector(depth), self.vector(depth)
            return f"({left}) {operator} {matching}({right})"

    def _with_number(self, depth: int) -> str:
        if not self._exact and self.random.random() < 0.3:
            return f"({self.vector(depth)}) {self.random.choice('*/')} {self.random.choice(('2', '0.5', '60'))}"
        with self._only(exact=True):
            operator = self._operator()
            sides = [f"({self.vector(depth)})", f"({self.scalar(depth)})"]
            self.random.shuffle(sides)
            return f"({sides[0]} {operator}{self._bool(operator)} {sides[1]})"

    def _operator(self) -> str:
        """An operator whose result is exact if that is required."""
        if self._exact and self.random.random() < 0.5:
            return self.random.choice(_COMPARISONS)
        return self.random.choice(("+", "-", "*", "%", *_COMPARISONS))


def older_series(random: Random) -> list[Series]:
    """Counters with resets, gauges, some with gaps, ends and staleness markers, buckets, and a metric of labels."""
    found: list[Series] = []
    for job in WORDS.labels["job"]:
        for instance in WORDS.labels["instance"]:
            target = {"job": job, "instance": instance}
            version = "v1" if instance == "1" else "v2"
            found += [
                ({"__name__": "requests_total", **target}, counter(random, times_of(random), 40)),
                ({"__name__": "errors_total", **target}, counter(random, times_of(random), 3)),
                ({"__name__": "temperature", **target}, gauge(random, times_of(random), 50)),
                ({"__name__": "size_bytes", **target}, gauge(random, times_of(random), 1 << 40)),
                ({"__name__": "odd_values", **target}, [(time, random.choice(_ODD)) for time in times_of(random)]),
                ({"__name__": "build_info", **target, "version": version}, [(time, 1.0) for time in times_of(random)]),
            ]
            if random.random() < 0.5:
                found[-2][1].append((found[-2][1][-1][0] + 15_000, _STALE))
            times, steps = times_of(random), (7, 15, 20)
            for place, le in enumerate(WORDS.labels["le"]):
                # In the order of the buckets at each time.
                rows = [
                    (time, float(10**6 * (place + 1) + number * sum(steps[: place + 1])))
                    for number, time in enumerate(times)
                ]
                found.append(({"__name__": "latency_bucket", **target, "le": le}, rows))
    return found


def times_of(random: Random) -> list[int]:
    """Every 15 seconds, never at a whole second; some have a gap, or end early."""
    shift = random.randrange(137, 800)
    times = [START - 30 * MINUTE + at + shift + random.randrange(-100, 100) for at in range(0, LENGTH, 15_000)]
    match random.randrange(4):
        case 0:
            return times[:150] + times[190:]
        case 1:
            return times[: random.randrange(150, 250)]
        case _:
            return times


def counter(random: Random, times: Sequence[int], most: int) -> list[tuple[int, float]]:
    """Far above zero, with occasional resets."""
    value, found = 10**6, []
    for time in times:
        value = 10**6 if random.random() < 0.01 else value + random.randrange(most)
        found.append((time, float(value)))
    return found


def gauge(random: Random, times: Sequence[int], most: int) -> list[tuple[int, float]]:
    """Whole numbers of both signs."""
    return [(time, float(random.randrange(-most, most))) for time in times]

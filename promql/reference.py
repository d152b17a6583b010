"""Generates the tables of aggregations and functions in docs/promql.md from the tables that the parser uses.

`python -m strandline.promql.reference` prints them. A test compares them with the page.
"""

import sys
from collections.abc import Iterator
from typing import Final

from strandline.promql.expressions import Aggregator
from strandline.promql.functions import FUNCTIONS, Function
from strandline.promql.parser import EXPERIMENTAL_AGGREGATORS
from strandline.promql.value_types import ValueType

_SUPPORTED = "yes"
_REFUSED = "refused: experimental in Prometheus 3.15"
_EMPTY = "always empty: native histograms are not stored"
_WORDS = {
    ValueType.SCALAR: "scalar",
    ValueType.VECTOR: "vector",
    ValueType.MATRIX: "range",
    ValueType.STRING: "string",
}
_AGGREGATIONS: Final = {
    Aggregator.SUM: ("vector", "Sum of the values"),
    Aggregator.AVG: ("vector", "Average of the values"),
    Aggregator.COUNT: ("vector", "Number of series"),
    Aggregator.MIN: ("vector", "Smallest value"),
    Aggregator.MAX: ("vector", "Largest value"),
    Aggregator.GROUP: ("vector", "1 for each group"),
    Aggregator.STDDEV: ("vector", "Standard deviation of the values"),
    Aggregator.STDVAR: ("vector", "Variance of the values"),
    Aggregator.TOPK: ("scalar, vector", "The k series with the largest values"),
    Aggregator.BOTTOMK: ("scalar, vector", "The k series with the smallest values"),
    Aggregator.LIMITK: ("scalar, vector", "Any k series"),
    Aggregator.LIMIT_RATIO: ("scalar, vector", "A given share of the series"),
    Aggregator.QUANTILE: ("scalar, vector", "Quantile of the values"),
    Aggregator.COUNT_VALUES: ("string, vector", "Number of occurrences of each value, with the value as a label"),
}


def reference() -> str:
    """Both tables, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "### Aggregations"
    yield ""
    yield "| aggregation | result for each group | supported |"
    yield "| --- | --- | --- |"
    for aggregator, (arguments, summary) in _AGGREGATIONS.items():
        status = _REFUSED if aggregator in EXPERIMENTAL_AGGREGATORS else _SUPPORTED
        yield f"| `{aggregator}({arguments})` | {summary} | {status} |"
    yield ""
    yield "### Functions"
    yield ""
    yield "| function | result | supported |"
    yield "| --- | --- | --- |"
    for function in FUNCTIONS.values():
        yield f"| `{_signature(function)}` | {function.summary} | {_status(function)} |"


def _signature(function: Function) -> str:
    required = len(function.parameters) - function.optional
    words = [_WORDS[one] if at < required else f"[{_WORDS[one]}]" for at, one in enumerate(function.parameters)]
    return f"{function.name}({', '.join([*words, *(['...'] if function.is_variadic else [])])})"


def _status(function: Function) -> str:
    if function.is_experimental:
        return _REFUSED
    return _EMPTY if function.is_for_histograms else _SUPPORTED


if __name__ == "__main__":
    sys.stdout.write(reference())

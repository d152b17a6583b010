"""PromQL's functions, aggregations and keywords as a JavaScript module, for the query box's completions."""

from dataclasses import dataclass
from typing import Final

import orjson

from strandline.promql.functions import FUNCTIONS, Function
from strandline.promql.value_types import ValueType

MODULE: Final = "language.js"

AGGREGATIONS: Final = {
    "avg": ("vector", "Average of the series of a group"),
    "bottomk": ("scalar, vector", "The k series with the smallest values of a group"),
    "count": ("vector", "Number of series in a group"),
    "count_values": ("string, vector", "Number of series in a group that have the same value"),
    "group": ("vector", "1 for each group"),
    "max": ("vector", "Largest value of a group"),
    "min": ("vector", "Smallest value of a group"),
    "quantile": ("scalar, vector", "Quantile of the values of a group"),
    "stddev": ("vector", "Standard deviation of the values of a group"),
    "stdvar": ("vector", "Variance of the values of a group"),
    "sum": ("vector", "Sum of the values of a group"),
    "topk": ("scalar, vector", "The k series with the largest values of a group"),
}
"""Parameters and meaning of the aggregations that the parser accepts."""

KEYWORDS: Final = {
    "and": "Series that the right side has, too",
    "atan2": "Arc tangent of the quotient of both sides",
    "bool": "0 or 1 instead of filtering",
    "by": "Group by these labels",
    "group_left": "Many series on the left for one on the right",
    "group_right": "Many series on the right for one on the left",
    "ignoring": "Match series by all labels but these",
    "offset": "Look at an earlier time",
    "on": "Match series by these labels",
    "or": "Both sides; the left one where both have a series",
    "unless": "Series that the right side does not have",
    "without": "Group by all labels but these",
}

_IN_SIGNATURES = {ValueType.MATRIX: "range vector"}


@dataclass(frozen=True, slots=True)
class _Completion:
    name: str
    signature: str
    summary: str


def language_module() -> bytes:
    """`FUNCTIONS`, `AGGREGATIONS` and `KEYWORDS`, each a list of name, signature and summary."""
    functions = [
        _Completion(one.name, f"({_parameters(one)})", one.summary)
        for one in FUNCTIONS.values()
        # The parser rejects experimental functions, and there are no native histograms.
        if not (one.is_experimental or one.is_for_histograms)
    ]
    aggregations = [_Completion(name, f"({given})", summary) for name, (given, summary) in AGGREGATIONS.items()]
    keywords = [_Completion(name, "", summary) for name, summary in KEYWORDS.items()]
    lists = {"FUNCTIONS": functions, "AGGREGATIONS": aggregations, "KEYWORDS": keywords}
    return b"".join(
        b"export const %s = %s;\n" % (name.encode(), orjson.dumps(entries)) for name, entries in lists.items()
    )


def _parameters(function: Function) -> str:
    names = [_IN_SIGNATURES.get(kind, kind.value) for kind in function.parameters]
    for index in range(len(names) - function.optional, len(names)):
        names[index] = f"[{names[index]}]"
    if function.is_variadic:
        names[-1] += "..."
    return ", ".join(names)

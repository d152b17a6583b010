"""Calls all kernels once. numba compiles a kernel, or loads it from its cache, at the first call; a query should not
wait for that.
"""

import numpy as np

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql import windows
from strandline.promql.classic_histograms import histogram_fraction, histogram_quantile
from strandline.promql.elementwise import evaluate_elementwise
from strandline.promql.expressions import Cardinality, Matching, Operator
from strandline.promql.joins import join
from strandline.promql.local import LocalEngine, MemoryShard
from strandline.promql.plan.query_times import QueryTimes
from strandline.promql.values import NO_SAMPLE, Grid, Vector

_QUERIES = (
    "avg without (le) (a)",
    "stddev(a)",
    "topk(1, a)",
    "quantile(0.5, a)",
    'count_values("v", a)',
    'label_replace(a, "b", "$1", "le", "(.*)")',
    'label_join(a, "b", "-", "le")',
    "sort(a)",
    "absent(b)",
    "-a > bool 0",
    "max_over_time(sum(rate(a[1m]))[1m:15s])",
)


def load_kernels() -> None:
    """Call the kernels of windows, operators, functions, joins and aggregations. May take seconds."""
    windows.load_kernels()
    keys = [encode_part_key({"__name__": name, "le": "+Inf"}) for name in ("a", "b")]
    data = np.frombuffer(bytearray(b"".join(keys)), dtype=np.uint8)
    # Two series with equal label sets once their names are dropped, so that the kernels that merge them are called.
    vector = Vector(
        KeyBytes(np.array([0, len(keys[0]), len(data)]), data), np.array([[1.0, NO_SAMPLE], [NO_SAMPLE, 1.0]])
    )
    join(Operator.ADD, vector, vector, Matching(Cardinality.MANY_TO_ONE, include=("le",)))
    join(Operator.OR, vector, vector, Matching(Cardinality.MANY_TO_MANY))
    grid, ones = Grid(0, 1, 2), np.ones(2)
    evaluate_elementwise("hour", vector.values, (), grid)
    evaluate_elementwise("clamp", vector.values, (ones, ones), grid)
    histogram_quantile(ones, vector, grid)
    histogram_fraction(ones, ones, vector)
    engine = LocalEngine([MemoryShard([({"__name__": "a", "le": le}, [(0, 1.0), (15_000, 2.0)])]) for le in "12"])
    for query in _QUERIES:
        engine.query(query, QueryTimes(0, 15_000, 15_000))

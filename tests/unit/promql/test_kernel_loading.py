"""After the kernels were loaded, queries compile none."""

import numpy as np
import pytest

from strandline.index.documents import encode_part_key
from strandline.index.key_bytes import KeyBytes
from strandline.promql import kernel_loading
from strandline.promql.classic_histograms import histogram_fraction, histogram_quantile
from strandline.promql.elementwise import ELEMENTWISE, evaluate_elementwise
from strandline.promql.expressions import Cardinality, Matching, Operator
from strandline.promql.joins import join
from strandline.promql.kernels import buckets, calendar, clamping, matching, operators
from strandline.promql.values import Grid, Vector

pytestmark = pytest.mark.unit

MODULES = (buckets, calendar, clamping, matching, operators)


def compiled() -> dict[str, int]:
    """The number of signatures for which each kernel that Python calls was compiled."""
    return {
        f"{module.__name__}.{name}": len(found.signatures)
        for module in MODULES
        for name, found in vars(module).items()
        if hasattr(found, "signatures") and not name.startswith("_")
    }


def test_each_kernel_is_compiled_for_one_kind_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    # The others have their own test.
    monkeypatch.setattr(kernel_loading.windows, "load_kernels", lambda: None)
    kernel_loading.load_kernels()
    before = compiled()
    assert set(before.values()) == {1}
    # Like the answer of another process: read-only parts of a message.
    key = encode_part_key({"le": "1"})
    keys = KeyBytes(np.array([0, len(key)], dtype=np.int64), np.frombuffer(bytearray(key), dtype=np.uint8))
    values = np.frombuffer(np.ones(3).tobytes(), dtype=np.float64).reshape(1, 3)
    sides = Vector(keys, values), Vector(keys, np.ones((1, 6))[:, ::2])
    grid = Grid(0, 1, 3)
    for operator in Operator:
        cardinality = Cardinality.MANY_TO_MANY if operator.is_set else Cardinality.ONE_TO_ONE
        for left, right in (sides, sides[::-1]):
            join(operator, left, right, Matching(cardinality))
    for name in ELEMENTWISE:
        parameters = {"clamp": 2, "clamp_min": 1, "clamp_max": 1}.get(name, 0)
        evaluate_elementwise(name, values, (values[0],) * parameters, grid)
    histogram_quantile(values[0], sides[1], grid)
    histogram_fraction(values[0], values[0], sides[0])
    assert compiled() == before

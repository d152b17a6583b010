"""A start loads every kernel, so that no client waits for one."""

import numpy as np
import pytest

from strandline.index.key_bytes import KeyBytes
from strandline.node.http.api.json_pieces import Points, matrix_json, series_json, terms_json, vector_json
from strandline.node.http.api.kernel_loading import load_kernels
from strandline.node.http.api.kernels import json_text
from strandline.node.query.answers import TermsAnswer

pytestmark = pytest.mark.unit

KERNELS = [
    json_text.write_terms,
    json_text.write_series,
    json_text.write_vector,
    json_text.write_matrix,
    json_text.write_point,
]


def columns(dtype: type, *values: float, writable: bool, shift: int) -> np.ndarray:
    """An array like those of frames: possibly read-only, and with any alignment."""
    data = bytes(shift) + np.array(values, dtype=dtype).tobytes()
    return np.frombuffer(bytearray(data) if writable else data, dtype=dtype, offset=shift)


@pytest.mark.parametrize("writable", [True, False])
@pytest.mark.parametrize("shift", [0, 1])
def test_answers_of_all_array_types_need_no_further_compilation(shift: int, *, writable: bool) -> None:
    load_kernels()
    compiled = [len(kernel.signatures) for kernel in KERNELS]
    assert all(compiled)

    def column(dtype: type, *values: float) -> np.ndarray:
        return columns(dtype, *values, writable=writable, shift=shift)

    keys = KeyBytes(column(np.int64, 0, 6), column(np.uint8, *b"\x01\x00a\x01\x00b"))
    points = Points(
        keys, column(np.int64, 0, 1), column(np.int64, 5), column(np.uint64, *np.array([1.5]).view(np.uint64))
    )
    assert b"".join(matrix_json(points)) == b'[{"metric":{"a":"b"},"values":[[0.005,"1.5"]]}]'
    assert b"".join(vector_json(points, 5)) == b'[{"metric":{"a":"b"},"value":[0.005,"1.5"]}]'
    assert b"".join(series_json(keys)) == b'[{"a":"b"}]'
    b"".join(terms_json(TermsAnswer(keys.offsets, keys.data, column(np.int64, 1), more=False)))
    assert [len(kernel.signatures) for kernel in KERNELS] == compiled

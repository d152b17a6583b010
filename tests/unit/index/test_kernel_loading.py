"""A start has the kernels at hand that the first questions need."""

import pytest

from strandline.index.documents import FewKeys, encode_part_key
from strandline.index.kernel_loading import load_kernels
from strandline.index.kernels.key_texts import names_of_key, value_of_key
from strandline.index.key_labels import names_in, values_in

pytestmark = pytest.mark.unit


def test_a_question_about_one_key_compiles_nothing_more() -> None:
    load_kernels()
    compiled = [len(kernel.signatures) for kernel in (names_of_key, value_of_key)]
    assert all(compiled)
    key = encode_part_key({"a": "b"})
    numbers = b"".join(number.to_bytes(8, "little") for number in (1, 0, len(key)))
    found = FewKeys.unpack(numbers + (7).to_bytes(4, "little") + key)
    names_in(found, limit=1)
    values_in(found, "a", limit=1)
    assert [len(kernel.signatures) for kernel in (names_of_key, value_of_key)] == compiled

"""Remote read from the client's side: the request, and the answer as columns."""

import pytest

from strandline.node.client.remote_read_client import NotRead, decode_result, encode_read
from strandline.time_range import TimeRange
from strandline.wire.encoding import Series, encode_request, field

pytestmark = pytest.mark.unit


def test_the_request_selects_one_label_and_value_in_a_range_of_times() -> None:
    # By hand: queries = 1 { start = 1, end = 2, matchers = 3 { type 0 is left out, name = 2, value = 3 } }.
    matcher = b"\x12\x01a\x1a\x02bc"
    query = b"\x08\x05" + b"\x10\xac\x02" + b"\x1a" + bytes([len(matcher)]) + matcher
    assert encode_read("a", "bc", TimeRange(5, 300)) == b"\x0a" + bytes([len(query)]) + query


def test_the_answer_s_series_become_columns() -> None:
    result = encode_request([Series([("a", "b")], [(1, 1.5), (2, 2.5)]), Series([("a", "c")], [(-1, 3.5)])])
    columns = decode_result(field(0x0A, result))
    assert columns.time.tolist() == [1, 2, -1]
    assert columns.value.tolist() == [1.5, 2.5, 3.5]
    assert columns.first_sample.tolist() == [0, 2, 3]


def test_an_answer_without_series_has_no_rows() -> None:
    assert len(decode_result(field(0x0A, b"")).time) == 0


@pytest.mark.parametrize("answer", [b"\x12\x00", b"\x0a\x05ab", b"\x0a\x02\x0a\x09", field(0x0A, b"") * 2])
def test_an_answer_to_something_else_is_refused(answer: bytes) -> None:
    with pytest.raises(NotRead):
        decode_result(answer)

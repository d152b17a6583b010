import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.formats.json_lines import parse_json_lines
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits
from support.damaged_texts import array
from support.sample_blocks import bits, flat, values_of

pytestmark = pytest.mark.unit

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
UP = ((b"__name__", b"up"),)
GOOD = '{"metric":{"__name__":"up"},"values":[1],"timestamps":[2]}'


def parse(text: str | bytes, **limits: int) -> SampleBlock:
    data = text.encode() if isinstance(text, str) else text
    return parse_json_lines(array(data), 50, Limits(**limits))


def with_values(values: str) -> SampleBlock:
    times = ",".join(str(1000 + i) for i in range(values.count(",") + 1))
    return parse(f'{{"metric":{{"__name__":"up"}},"values":[{values}],"timestamps":[{times}]}}\n')


def with_metric(metric: str, **limits: int) -> SampleBlock:
    return parse(f'{{"metric":{metric},"values":[1],"timestamps":[2]}}\n', **limits)


def test_a_line_holds_the_samples_of_one_series() -> None:
    block = parse(
        '{"metric":{"__name__":"up","job":"x"},"values":[1,2.5],"timestamps":[1700000000000,1700000015000]}\n'
    )
    labels = ((b"__name__", b"up"), (b"job", b"x"))
    assert flat(block) == [(labels, 1_700_000_000_000, bits(1)), (labels, 1_700_000_015_000, bits(2.5))]
    assert (block.records, block.nulls, block.bad.total) == (1, 0, 0)


def test_keys_may_be_in_any_order_between_others_and_white_space() -> None:
    block = parse(
        '  { "timestamps" : [ 1 , 2 ] , "x" : {"a":[1,{"b":null}],"c":"\\"}"}, "v\\u0061lues":[3,4],"y":[],"z":{},'
        ' "t":true,"f":false, "metric" : { "__name__" : "up" } } \r\n\n  \n' + GOOD
    )
    assert [(time, value) for _, time, value in flat(block)] == [(1, bits(3)), (2, bits(4)), (2, bits(1))]
    assert (block.records, len(block.series)) == (2, 1)


def test_nulls_are_left_out_and_counted() -> None:
    block = with_values('1,null,3,"null",1e400,4.9406564584124654e-324')
    assert flat(block) == [
        (UP, 1000, bits(1)),
        (UP, 1002, bits(3)),
        (UP, 1004, bits(math.inf)),
        (UP, 1005, bits(5e-324)),
    ]
    assert block.nulls == 2


def test_a_line_of_nulls_is_a_record_without_a_series() -> None:
    block = with_values("null,null")
    assert (flat(block), len(block.series), block.records, block.nulls, block.bad.total) == ([], 0, 1, 2, 0)


def test_infinities_and_nan_are_read_as_victoriametrics_spells_them() -> None:
    block = with_values('"Infinity","-Infinity","Inf","-inf","infinity","NaN","nan"')
    assert [str(value) for value in values_of(block)] == ["inf", "-inf", "inf", "-inf", "inf", "nan", "nan"]


@pytest.mark.parametrize(
    "text", ["0", "-0", "-1.5e-3", "1E5", "123456789012345678901234567890", "0.1e+2", "9007199254740993"]
)
def test_numbers_are_read_as_in_json(text: str) -> None:
    [value] = values_of(with_values(text))
    assert bits(value) == bits(float(text))


@pytest.mark.parametrize(
    "text",
    ["01", "+1", ".5", "1.", "-", "1.e5", "1e", "NaN", "Infinity", "nul", "true", "[1]", "{}", '"1"', '"Nan"', ""],
)
def test_other_values_make_the_line_bad(text: str) -> None:
    block = parse(GOOD + '\n{"metric":{"a":"b"},"values":[1,' + text + '],"timestamps":[1,2]}\n' + GOOD)
    assert (values_of(block), block.bad.total, len(block.series)) == ([1, 1], 1, 1)


def test_strings_have_all_of_jsons_escapes() -> None:
    block = with_metric(r'{"__name__":"\"\\\/\b\f\n\r\t","\u00e9":"\ud83d\ude00\u20AC\u0041"}')
    [(labels, _, _)] = flat(block)
    assert labels == ((b"__name__", b'"\\/\b\f\n\r\t'), ("é".encode(), "😀€A".encode()))


def test_spellings_of_one_series_are_one_series() -> None:
    lines = [
        '{"metric":{"__name__":"up","a":"b"},"values":[1],"timestamps":[2]}',
        '{"metric":{"a":"b","__name__":"up"},"values":[2],"timestamps":[2]}',
        '{"metric":{"a":"\\u0062","__name__":"up", "empty":""},"values":[3],"timestamps":[2]}',
    ]
    block = parse("\n".join(lines))
    assert (len(block.series), values_of(block)) == (1, [1, 2, 3])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("up 1 2", "not a valid JSON object"),
        ("[]", "not a valid JSON object"),
        ("{", "not a valid JSON object"),
        (GOOD[:-1], "not a valid JSON object"),
        (GOOD + "x", "not a valid JSON object"),
        (GOOD[:-1] + ",}", "not a valid JSON object"),
        (GOOD[:-1] + ',"x":tru}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":01}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":"\\x"}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":"\\u12g4"}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":"a\tb"}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":[1,]}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":[1}]}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":{"a"}}', "not a valid JSON object"),
        (GOOD[:-1] + ',"x":' + "[" * 100 + "]" * 100 + "}", "JSON is nested too deeply"),
        (GOOD[:-1] + ',"values":[1]}', "a JSON key occurs twice"),
        ("{}", 'no "metric" object'),
        ('{"metric":[],"values":[1],"timestamps":[2]}', 'no "metric" object'),
        ('{"metric":{"a":"b"},"values":[1]}', 'no "values" or no "timestamps"'),
        ('{"metric":{"a":"b"},"values":1,"timestamps":[1]}', 'no "values" or no "timestamps"'),
        ('{"metric":{"a":"b"},"values":[1,2],"timestamps":[1]}', '"values" and "timestamps" differ in length'),
        ('{"metric":{"a":"b"},"values":[],"timestamps":[]}', "no value"),
        ('{"metric":{"a":"b"},"values":[1],"timestamps":[null]}', "the time does not have the expected form"),
        ('{"metric":{"a":"b"},"values":[1],"timestamps":["1"]}', "the time does not have the expected form"),
        ('{"metric":{"a":"b"},"values":[1],"timestamps":[1e30]}', "the time is out of range"),
        ('{"metric":{"a":"b"},"values":["x"],"timestamps":[1]}', "the value is not a number"),
        ('{"metric":{"a":1},"values":[1],"timestamps":[1]}', 'the "metric" object may hold only strings'),
        ('{"metric":{"a":{"b":"c"}},"values":[1],"timestamps":[1]}', "not a valid JSON object"),
        ('{"metric":{"a":"b",},"values":[1],"timestamps":[1]}', "not a valid JSON object"),
        ('{"metric":{},"values":[1],"timestamps":[1]}', "no labels"),
        ('{"metric":{"a":""},"values":[1],"timestamps":[1]}', "no labels"),
        ('{"metric":{"":"b"},"values":[1],"timestamps":[1]}', "a label has an empty name"),
        ('{"metric":{"a":"b","a":"b"},"values":[1],"timestamps":[1]}', "a label name occurs twice"),
        ('{"metric":{"a":"\\ud800"},"values":[1],"timestamps":[1]}', "a label is not valid UTF-8"),
        (b'{"metric":{"a":"\xff"},"values":[1],"timestamps":[1]}', "a label is not valid UTF-8"),
        ('{"metric":{"a":"abcdefghij"},"values":[1],"timestamps":[1]}', "a label value is too long"),
        ('{"metric":{"abcdefghi":"a"},"values":[1],"timestamps":[1]}', "a label name is too long"),
        ('{"metric":{"a":"1","b":"2","c":"3"},"values":[1],"timestamps":[1]}', "too many labels"),
    ],
)
def test_a_bad_line_is_shown_with_position_and_reason_and_affects_no_other(line: str | bytes, reason: str) -> None:
    data = line if isinstance(line, bytes) else line.encode()
    before = GOOD.encode() + b"\n"
    block = parse(before + data + b"\n" + GOOD.encode(), labels=2, label_value=9, label_name=8)
    assert values_of(block) == [1, 1]
    assert (block.records, dict(block.bad.counts)) == (3, {reason: 1})
    [bad] = block.bad.examples
    assert (bad.offset, bad.line, bad.reason) == (50 + len(before), 2, reason)
    assert bad.excerpt == data.decode("utf-8", "replace")[:200]


def test_one_long_line_makes_the_columns_grow() -> None:
    count = 50_000
    values = ",".join("null" if i % 3 == 0 else "1e-320" if i % 5 == 0 else "7" for i in range(count))
    block = parse(f'{{"values":[{values}],"metric":{{"a":"b"}},"timestamps":[{",".join(map(str, range(count)))}]}}')
    kept = [(i, 1e-320 if i % 5 == 0 else 7.0) for i in range(count) if i % 3]
    assert list(zip(block.times.tolist(), values_of(block), strict=True)) == kept
    assert block.nulls == count - len(kept)


@given(
    st.dictionaries(TEXT, TEXT, min_size=1, max_size=8),
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False) | st.none(), st.integers(-(2**62), 2**62)),
        min_size=1,
    ),
    st.booleans(),
)
def test_what_the_json_module_writes_is_read_back(
    metric: dict[str, str], points: list[tuple[float | None, int]], plain: bool
) -> None:
    line = {"metric": metric, "values": [value for value, _ in points], "timestamps": [time for _, time in points]}
    block = parse(json.dumps(line, ensure_ascii=plain) + "\n")
    labels = tuple(sorted((name.encode(), value.encode()) for name, value in metric.items()))
    assert flat(block) == [(labels, time, bits(value)) for value, time in points if value is not None]

import csv
import io
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.formats.csv_options import CsvOptions, CsvValue
from strandline.jobs.formats.csv_rows import parse_csv
from strandline.jobs.formats.time_formats import UnixTime
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits
from support.damaged_texts import array
from support.sample_blocks import bits, flat, values_of

pytestmark = pytest.mark.unit

# time, host, value
OPTIONS = CsvOptions(3, (CsvValue(2, "cpu"),), 0, UnixTime("ms"), labels=(("host", 1),))
MULTILINE = CsvOptions(3, (CsvValue(2, "cpu"),), 0, UnixTime("ms"), labels=(("host", 1),), multiline=True)


def parse(text: str | bytes, options: CsvOptions = OPTIONS, offset: int = 100, **limits: int) -> SampleBlock:
    data = text.encode() if isinstance(text, str) else text
    return parse_csv(array(data), offset, options, Limits(**limits))


def host(name: bytes, metric: bytes = b"cpu") -> tuple[tuple[bytes, bytes], ...]:
    return (b"__name__", metric), (b"host", name)


def reasons(block: SampleBlock) -> list[str]:
    return [example.reason for example in block.bad.examples]


def test_a_row_becomes_a_sample_of_the_series_that_its_labels_name() -> None:
    block = parse("1000,a,1.5\n2000,b,2\n3000,a,-3e2\n")
    assert flat(block) == [
        (host(b"a"), 1000, bits(1.5)),
        (host(b"b"), 2000, bits(2)),
        (host(b"a"), 3000, bits(-300)),
    ]
    assert (len(block.series), block.records, block.bad.total) == (2, 3, 0)


@pytest.mark.parametrize(
    "text", ["1000,a,1\r\n2000,a,2\r\n", "1000,a,1\n2000,a,2", "1000,a,1\r\n2000,a,2\r", "\n1000,a,1\n\r\n\n2000,a,2\n"]
)
def test_line_ends_and_empty_lines_have_no_effect(text: str) -> None:
    block = parse(text)
    assert flat(block) == [(host(b"a"), 1000, bits(1)), (host(b"a"), 2000, bits(2))]
    assert block.records == 2


def test_a_header_and_a_byte_order_mark_are_skipped_at_the_start_of_the_file_only() -> None:
    options = CsvOptions(3, (CsvValue(2, "cpu"),), 0, UnixTime("ms"), (("host", 1),), header=True)
    text = b"\xef\xbb\xbftime,host,value\n1000,a,1\n"
    assert flat(parse(text, options, offset=0)) == [(host(b"a"), 1000, bits(1))]
    assert parse(text, options, offset=0).records == 1
    assert reasons(parse(text, options, offset=7)) == ["the time does not have the expected form"]
    assert reasons(parse(b"\xef\xbb\xbf1000,a,1\n")) == ["the time does not have the expected form"]


def test_quoted_fields_hold_delimiters_and_doubled_quotes() -> None:
    block = parse('1000,"a,b",1\n2000,"say ""hi""","2"\n"3000",a"b,3\n')
    assert flat(block) == [
        (host(b"a,b"), 1000, bits(1)),
        (host(b'say "hi"'), 2000, bits(2)),
        (host(b'a"b'), 3000, bits(3)),
    ]


def test_without_a_quote_character_quotes_are_ordinary_text() -> None:
    options = CsvOptions(3, (CsvValue(2, "cpu"),), 0, UnixTime("ms"), (("host", 1),), delimiter="\t", quote="")
    assert flat(parse('1000\t"a,b\t1\n', options)) == [(host(b'"a,b'), 1000, bits(1))]


def test_columns_that_are_not_adjacent_identify_a_series_together() -> None:
    options = CsvOptions(5, (CsvValue(2, 3),), 1, UnixTime("ms"), (("a", 0), ("b", 4)))
    block = parse("x,1,1,m,y\nx,2,2,m,z\ny,3,3,m,x\nx,4,4,m,y\nxm,5,5,,y\n", options)
    assert block.row.tolist() == [0, 1, 2, 0]
    assert reasons(block) == ["no metric name"]


def test_two_spellings_of_one_series_are_one_series() -> None:
    block = parse('1000,a,1\n2000,"a",2\n')
    assert len(block.series) == 1
    assert block.row.tolist() == [0, 0]


def test_a_newline_in_quotes_belongs_to_the_field_only_in_multiline_files() -> None:
    text = '1000,"a\nb",1\n2000,c,oops\n'
    block = parse(text, MULTILINE)
    assert flat(block) == [(host(b"a\nb"), 1000, bits(1))]
    assert [(example.offset, example.line) for example in block.bad.examples] == [(100 + 13, 3)]
    block = parse(text)
    assert reasons(block) == ["a quoted field is not closed", "too few columns", "the value is not a number"]


def test_in_multiline_files_a_stray_quote_invalidates_its_row_and_rows_end_where_quotes_are_even() -> None:
    block = parse('1000,a"b\n"c,1\n2000,d,2\n3000,"e"f,3\n4000,g,4\n5000,"h,5\n', MULTILINE)
    assert [time for _, time, _ in flat(block)] == [2000, 4000]
    assert reasons(block) == [
        "a quote at a place where none may stand",
        "a quote at a place where none may stand",
        "a quoted field is not closed",
    ]
    assert block.records == 5


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("1000,a", "too few columns"),
        ("1000,a,1,2", "too many columns"),
        ("1000,a,one", "the value is not a number"),
        ("1000,a, 1", "the value is not a number"),
        ("1000,a,", "no value"),
        ("noon,a,1", "the time does not have the expected form"),
        ("1e40,a,1", "the time is out of range"),
        ('1000,"a,1', "a quoted field is not closed"),
        ('1000,"a"b,1', "a quote at a place where none may stand"),
        ("1000,abcdefghi,1", "a label value is too long"),
        (b"1000,\xff,1", "a label is not valid UTF-8"),
        (b"1000,\xed\xa0\x80,1", "a label is not valid UTF-8"),
    ],
)
def test_a_bad_row_is_shown_with_position_and_reason_and_affects_no_other(row: str | bytes, reason: str) -> None:
    data = row if isinstance(row, bytes) else row.encode()
    block = parse(b"1,a,1\n" + data + b"\r\n2,a,2\n", label_value=8)
    assert values_of(block) == [1, 2]
    assert (block.records, dict(block.bad.counts)) == (3, {reason: 1})
    [bad] = block.bad.examples
    assert (bad.offset, bad.line, bad.reason) == (106, 2, reason)
    assert bad.excerpt == data.decode("utf-8", "replace")


def test_only_the_first_bad_rows_are_shown_and_all_are_counted() -> None:
    block = parse("x\n" * 1000)
    assert block.bad.counts == {"too few columns": 1000}
    assert [example.line for example in block.bad.examples] == list(range(1, 21))


def test_a_long_excerpt_is_cut() -> None:
    [bad] = parse("ä" * 5000 + "\n").bad.examples
    assert bad.excerpt == "ä" * 200


def test_several_values_of_a_row_are_samples_of_several_metrics_and_empty_ones_are_left_out() -> None:
    values = (CsvValue(1, "cpu"), CsvValue(2, "memory"), CsvValue(3, 4))
    options = CsvOptions(5, values, 0, UnixTime("s"), constants=(("env", "prod"),), delimiter=";")
    block = parse("1.5;1;2;3;disk\n2.5;;4;;disk\n3.5;;;;disk\n4.5;1;;5;\n5.5;1;;;\n", options)
    env = (b"env", b"prod")
    assert [(dict(labels)[b"__name__"], time, value) for labels, time, value in flat(block)] == [
        (b"cpu", 1500, bits(1)),
        (b"memory", 1500, bits(2)),
        (b"disk", 1500, bits(3)),
        (b"memory", 2500, bits(4)),
        (b"cpu", 5500, bits(1)),
    ]
    assert all(env in labels for labels, _, _ in flat(block))
    assert dict(block.bad.counts) == {"no value": 1, "no metric name": 1}


def test_an_empty_label_is_left_out_and_labels_are_sorted_by_name() -> None:
    options = CsvOptions(
        4, (CsvValue(3, "m"),), 0, UnixTime("ms"), labels=(("zone", 1), ("A", 2)), constants=(("b", "c"), ("empty", ""))
    )
    block = parse("1,z,a,1\n2,,a,1\n", options)
    assert [labels for labels, _, _ in flat(block)] == [
        ((b"A", b"a"), (b"__name__", b"m"), (b"b", b"c"), (b"zone", b"z")),
        ((b"A", b"a"), (b"__name__", b"m"), (b"b", b"c")),
    ]


def test_a_row_with_more_labels_than_the_limit_is_bad() -> None:
    assert reasons(parse("1000,a,1\n", labels=1)) == ["too many labels"]


@pytest.mark.parametrize(
    ("unit", "text"),
    [("s", "1700000000.1239"), ("ms", "1700000000123"), ("us", "1700000000123999"), ("ns", "1700000000123999999")],
)
def test_every_unit_gives_milliseconds(unit: str, text: str) -> None:
    options = CsvOptions(2, (CsvValue(1, "m"),), 0, UnixTime(unit))  # type: ignore[arg-type]
    assert parse(f"{text},1\n", options).times.tolist() == [1_700_000_000_123]


def test_numbers_with_more_digits_than_the_kernel_takes_are_exact_too() -> None:
    texts = ["9007199254740992." + "9" * 30, "4.9406564584124654e-324", "1e400", "-2.2250738585072011e-308"]
    block = parse("".join(f"{time},a,{text}\n" for time, text in enumerate(texts * 100)))
    assert values_of(block) == [float(text) for text in texts * 100]


def test_many_series_make_all_columns_grow() -> None:
    rng = random.Random(4)  # noqa: S311
    hosts = [f"host-{rng.randrange(30_000)}" * 3 for _ in range(40_000)]
    block = parse("".join(f"{time},{name},{time}\n" for time, name in enumerate(hosts)))
    assert [(dict(labels)[b"host"], time) for labels, time, _ in flat(block)] == [
        (name.encode(), time) for time, name in enumerate(hosts)
    ]


def test_an_empty_input_gives_an_empty_block() -> None:
    block = parse("")
    assert (flat(block), block.records, block.bad.total) == ([], 0, 0)


@given(
    st.lists(
        st.tuples(
            st.integers(-(10**15), 10**15),
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
            st.floats(allow_nan=False),
        ),
        max_size=20,
    ),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_csv_module_writes_is_read_back(
    rows: list[tuple[int, str, float]], everything: bool, end: str
) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL).writerows(rows)
    block = parse(out.getvalue(), MULTILINE)
    assert block.bad.total == 0
    assert flat(block) == [(host(name.encode()), time, bits(value)) for time, name, value in rows]

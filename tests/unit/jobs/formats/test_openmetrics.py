import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.jobs.formats.openmetrics import parse_openmetrics
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits
from support.damaged_texts import array
from support.sample_blocks import RawLabels, bits, flat, values_of

pytestmark = pytest.mark.unit

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def parse(text: str | bytes, **limits: int) -> SampleBlock:
    data = text.encode() if isinstance(text, str) else text
    return parse_openmetrics(array(data), 50, Limits(**limits))


def series(text: str, **limits: int) -> RawLabels:
    """The labels of a line's series."""
    [(labels, _, _)] = flat(parse(f"{text} 1 2\n", **limits))
    return labels


def test_a_line_is_a_sample_with_its_time_in_seconds() -> None:
    block = parse('up{job="node"} 1 1700000000\nup 0.5 1700000000.25\n')
    assert flat(block) == [
        (((b"__name__", b"up"), (b"job", b"node")), 1_700_000_000_000, bits(1)),
        (((b"__name__", b"up"),), 1_700_000_000_250, bits(0.5)),
    ]
    assert (block.records, block.bad.total) == (2, 0)


def test_comments_and_empty_lines_are_not_records() -> None:
    block = parse(
        "# HELP up Whether it is up.\n# TYPE up gauge\n# UNIT x_seconds seconds\n\n# other\nup 1 2\r\n  \n# EOF\n"
    )
    assert (block.records, len(flat(block)), block.bad.total) == (1, 1, 0)


def test_lines_after_the_end_marker_are_bad() -> None:
    block = parse("up 1 2\n# EOF\nup 1 3\n# TYPE up gauge\n\n")
    assert values_of(block) == [1]
    assert dict(block.bad.counts) == {"text after # EOF": 2}
    assert [(example.offset, example.line) for example in block.bad.examples] == [(63, 3), (70, 4)]


def test_the_end_marker_must_be_the_whole_line() -> None:
    assert parse("# EOF \n# EOFs\n #\nup 1 2\n").bad.total == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e3", 1000.0), ("+Inf", float("inf")), ("-Inf", float("-inf")), ("-0", -0.0), (".5", 0.5), ("5.", 5.0)],
)
def test_values_are_read_as_prometheus_reads_them(text: str, value: float) -> None:
    [found] = values_of(parse(f"m {text} 1\n"))
    assert bits(found) == bits(value)


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("1700000000.001", 1_700_000_000_001),
        ("1.0019", 1001),
        ("-1.0019", -1001),
        ("0.0009", 0),
        ("1.7e9", 1_700_000_000_000),
        ("4.35", 4350),
        ("1700000000.000999999999999999999", 1_700_000_000_000),
    ],
)
def test_times_are_exact_to_the_millisecond_and_the_rest_is_cut_off(text: str, millis: int) -> None:
    assert parse(f"m 1 {text}\n").times.tolist() == [millis]


def test_label_values_have_three_escapes_and_other_backslashes_are_literal() -> None:
    labels = dict(series(r'm{a="x\"y",b="x\\y",c="x\ny",d="x\ty\{}",e="}, {"}'))
    assert labels == {
        b"__name__": b"m",
        b"a": b'x"y',
        b"b": b"x\\y",
        b"c": b"x\ny",
        b"d": b"x\\ty\\{}",
        b"e": b"}, {",
    }


def test_names_in_quotes_may_hold_any_character() -> None:
    assert series('{"my metric","a \\"b\\"" = "1", c="2",}') == (
        (b"__name__", b"my metric"),
        (b'a "b"', b"1"),
        (b"c", b"2"),
    )
    assert series('{c="2","töne"}') == ((b"__name__", "töne".encode()), (b"c", b"2"))


def test_spellings_of_one_series_are_one_series() -> None:
    block = parse('m{a="1",b="2"} 1 1\nm{b="2",a="1"} 2 2\n{"m",a="1",b="2"} 3 3\nm{a="1", b="2", c="",} 4 4\n')
    assert len(block.series) == 1
    assert values_of(block) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "rest", ["# {} 1", '# {trace_id="a } b"} 0.5 1700000000.5', '#{a="\\""} NaN', '# {a="b"} 1 2 ']
)
def test_an_exemplar_is_checked_and_left_out(rest: str) -> None:
    block = parse(f"m 1 2 {rest}\n")
    assert (values_of(block), block.bad.total) == ([1], 0)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("m 1", "no timestamp"),
        ('m{a="b"} 1 # {} 1', "no timestamp"),
        ("m", "no value"),
        ("m ", "no value"),
        ("m one 2", "the value is not a number"),
        ("m 1x 2", "the value is not a number"),
        ('m{a="b"}1 2', "the value is not a number"),
        ("m 1 soon", "the time does not have the expected form"),
        ("m 1 2x", "the time does not have the expected form"),
        ("m 1 NaN", "the time does not have the expected form"),
        ("m 1 1e17", "the time is out of range"),
        ("m 1 2 3", "the text after the timestamp is not an exemplar"),
        ("m 1 2 # {} x", "the text after the timestamp is not an exemplar"),
        ('m 1 2 # {a="b 1', "the text after the timestamp is not an exemplar"),
        ("m 1 2 # {} 1 2 3", "the text after the timestamp is not an exemplar"),
        ("1m 1 2", "the metric name is malformed"),
        ("m-n 1 2", "the metric name is malformed"),
        ("ü 1 2", "the metric name is malformed"),
        ('m{a="b" 1 2', "the labels are malformed"),
        ('m{a="b} 1 2', "the labels are malformed"),
        ("m{a=b} 1 2", "the labels are malformed"),
        ("m{a} 1 2", "the labels are malformed"),
        ('m{,a="b"} 1 2', "the labels are malformed"),
        ('m{1a="b"} 1 2', "the labels are malformed"),
        ('m{a:b="b"} 1 2', "the labels are malformed"),
        ('m{a="b"c="d"} 1 2', "the labels are malformed"),
        ('m{a="b"}{} 1 2', "the value is not a number"),
        ('m{"n"} 1 2', "the labels are malformed"),
        ('{a="b"} 1 2', "no metric name"),
        ("{} 1 2", "no metric name"),
        ('{""} 1 2', "no metric name"),
        ('{__name__="m"} 1 2', "no metric name"),
        ('m{__name__="n"} 1 2', "a label name occurs twice"),
        ('m{a="b",a="c"} 1 2', "a label name occurs twice"),
        ('m{""="b"} 1 2', "a label has an empty name"),
        ('m{a="abcdefghij"} 1 2', "a label value is too long"),
        ('m{abcdefghi="a"} 1 2', "a label name is too long"),
        ('m{a="1",b="2",c="3"} 1 2', "too many labels"),
        (b'm{a="\xc3"} 1 2', "a label is not valid UTF-8"),
    ],
)
def test_a_bad_line_is_shown_with_position_and_reason_and_affects_no_other(line: str | bytes, reason: str) -> None:
    data = line if isinstance(line, bytes) else line.encode()
    block = parse(b"m 1 2\n" + data + b"\nm 2 2", labels=3, label_value=9, label_name=8)
    assert values_of(block) == [1, 2]
    assert (block.records, dict(block.bad.counts)) == (3, {reason: 1})
    [bad] = block.bad.examples
    assert (bad.offset, bad.line, bad.excerpt) == (56, 2, data.decode("utf-8", "replace"))


def test_an_empty_label_does_not_count_towards_limits() -> None:
    empty = ",".join(f'"{"n" * 2000}\\n{i}"=""' for i in range(200))
    assert series(f'm{{{empty},a="b"}}', labels=2) == ((b"__name__", b"m"), (b"a", b"b"))


def test_long_texts_with_escapes_are_measured_without_them() -> None:
    assert dict(series('m{a="' + "\\n" * 8 + '"}', label_value=8))[b"a"] == b"\n" * 8
    assert parse('m{a="' + "\\n" * 9 + '"} 1 2\n', label_value=8).bad.counts == {"a label value is too long": 1}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@given(TEXT, st.dictionaries(TEXT.filter(lambda name: name != "__name__"), TEXT, max_size=8), st.randoms())
def test_any_names_and_values_in_quotes_are_read_back(metric: str, labels: dict[str, str], rng: object) -> None:
    parts = [f"{_quoted(name)}={_quoted(value)}" for name, value in labels.items()]
    rng.shuffle(parts)  # type: ignore[attr-defined]
    pairs = [("__name__", metric), *labels.items()]
    expected = sorted((name.encode(), value.encode()) for name, value in pairs)
    # A carriage return before the newline would be part of the line's end, so something follows the labels.
    assert series("{" + ",".join([_quoted(metric), *parts]) + "}") == tuple(expected)

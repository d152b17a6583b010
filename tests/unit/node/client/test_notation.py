"""Labels in PromQL's notation."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import parse_selector
from strandline.node.client.notation import list_item, quoted, selector_of, single_line

pytestmark = pytest.mark.unit

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
NAMES = st.sampled_from(["on", "NaN", "up", "a:b", "a.b", "", "ä", "0a", "group_left"]) | TEXTS


def test_a_series_is_written_as_the_selector_that_matches_it() -> None:
    assert selector_of({"__name__": "up", "job": "a", "instance": "b"}) == 'up{instance="b", job="a"}'
    assert selector_of({"__name__": "up"}) == "up"
    assert selector_of({"job": "a"}) == '{job="a"}'
    assert selector_of({}) == "{}"


def test_names_that_need_quotes_are_quoted() -> None:
    assert selector_of({"__name__": "http.requests", "k8s.pod": "a"}) == '{"http.requests", "k8s.pod"="a"}'
    assert selector_of({"__name__": "on"}) == '{"on"}', "PromQL reads it as an operator"
    assert selector_of({"__name__": "job:up:sum", "a:b": "c"}) == 'job:up:sum{"a:b"="c"}', "only metrics have colons"


@given(NAMES, st.dictionaries(NAMES.filter(bool), TEXTS, max_size=3))
@example("Inf", {"a": '\\"\n'})
def test_a_written_selector_is_parsed_as_the_same_labels(metric: str, rest: dict[str, str]) -> None:
    labels = {name: value for name, value in rest.items() if name != "__name__"}
    if metric:
        labels["__name__"] = metric
    read = parse_selector(selector_of(labels))
    assert {(matcher.label, matcher.value) for matcher in read} == set(labels.items())
    assert all(matcher.op is MatchOp.EQUAL for matcher in read)
    assert all(isinstance(matcher, Matcher) for matcher in read)


@pytest.mark.parametrize(
    ("character", "rendered"),
    [("\x1b", "\\x1b"), ("\x7f", "\\x7f"), ("\x9b", "\\u009b"), ("\u202e", "\\u202e"), ("\U000e0001", "\\U000e0001")],
)
def test_no_control_character_is_written(character: str, rendered: str) -> None:
    assert quoted(f"a{character}b") == f'"a{rendered}b"'
    assert list_item(f"a{character}b") == f'"a{rendered}b"'
    assert single_line(f"a{character}b") == f"a{rendered}b"
    assert selector_of({f"l{character}": "v"}) == f'{{"l{rendered}"="v"}}'


@given(st.text(max_size=12))
def test_every_text_is_written_on_one_printable_line(text: str) -> None:
    for rendered in (
        quoted(text),
        list_item(text),
        single_line(text),
        selector_of({"__name__": text, text or "a": text}),
    ):
        assert rendered.isprintable()


def test_a_listed_value_is_unquoted_unless_that_would_be_ambiguous() -> None:
    assert list_item("host-1 (a) ü \\d") == "host-1 (a) ü \\d"
    assert list_item("") == '""'
    assert list_item(" a") == '" a"'
    assert list_item("a\nb") == '"a\\nb"'
    assert list_item('"a"') == '"\\"a\\""', "otherwise it would look quoted"


def test_a_message_of_a_server_is_on_one_line() -> None:
    assert single_line("no\n shard\t answers\r\n") == "no shard answers"

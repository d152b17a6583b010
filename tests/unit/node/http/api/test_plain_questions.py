"""Questions that are read from a URL without a detour ask for what the general way reads."""

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.node.http.api.lookups import READERS
from strandline.node.http.api.plain_questions import plain_question
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import parameters_of_whole
from strandline.node.http.whole_requests import Headers, WholeRequest
from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES, Lookup
from strandline.node.query.quick import Question

pytestmark = pytest.mark.unit

MOST = 1000
names = st.sampled_from(["match[]", "match%5B%5D", "match%5b%5D", "start", "end", "limit", "timeout", "x"])
selectors = st.one_of(
    st.text(st.sampled_from("ab_:{}\"=!~,\\ +%\n'é"), max_size=12),
    st.builds(
        lambda name, matchers, comma: f"{name}{{{','.join(matchers)}{comma}}}",
        st.sampled_from(["", "up", "on", "Inf", "a:b"]),
        st.lists(
            st.builds(
                lambda label, op, value: f'{label}{op}"{value}"',
                st.sampled_from(["job", "__name__", "_", "é", "9"]),
                st.sampled_from(["=", "!=", "=~", "!~"]),
                st.sampled_from(["", "a", "host:9100", "a|b", 'x\\"y', "é", "a b", "[", "%41", "a+b", "a,b}"]),
            ),
            max_size=3,
        ),
        st.sampled_from(["", ",", ",,"]),
    ),
)
numbers = st.one_of(st.integers(0, 10**14).map(str), st.sampled_from(["", "-1", "1.5", "0", "007", "1e3", "٣", "x"]))
parameters = st.tuples(
    names, st.one_of(numbers, selectors.map(quote), selectors.map(lambda text: quote(text, safe="{}=,:")))
)


def generally(kind: str, label: str, query: str) -> Lookup | None:
    """What the general way reads; None if it refuses."""
    request = WholeRequest("GET", "/", query, Headers({}), b"")
    try:
        return Question.of(READERS[kind](parameters_of_whole(request), label, MOST)).ask()
    except BadParameter:
        return None


@given(
    st.sampled_from([SERIES, LABEL_NAMES, LABEL_VALUES]),
    st.sampled_from(["job", "U__a_2E_b", "a.b", "__name__"]),
    st.lists(parameters, max_size=5),
)
@example(SERIES, "", [("match[]", "%7Bjob%3D%22a%3A1%22%7D"), ("start", "1"), ("end", "2"), ("limit", "0")])
@example(LABEL_NAMES, "", [("start", "2"), ("end", "1")])
@example(LABEL_NAMES, "", [("start", "\u0663")])
def test_what_is_read_is_what_the_general_way_reads(kind: str, label: str, given_as: list[tuple[str, str]]) -> None:
    label = label if kind == LABEL_VALUES else ""
    query = "&".join(f"{name}={value}" for name, value in given_as)
    question = plain_question(kind, label, query, MOST)
    if question is not None:
        assert question.ask() == generally(kind, label, query)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (SERIES, "match%5B%5D=%7Bpod%3D%22pod-1%22%7D&start=1794879561&end=1794886761"),
        (SERIES, 'match[]=up{job="a",env!="b"}'),
        (SERIES, "match[]=up&limit=5"),
        (LABEL_NAMES, ""),
        (LABEL_NAMES, "start=1794879561"),
        (LABEL_VALUES, "match[]=%7Binstance%3D%22host%3A9100%22%2C%7D&limit=0"),
    ],
)
def test_what_clients_send_is_plain(kind: str, query: str) -> None:
    label = "job" if kind == LABEL_VALUES else ""
    question = plain_question(kind, label, query, MOST)
    assert question is not None
    assert question.ask() == generally(kind, label, query)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        (SERIES, ""),
        (SERIES, "match[]={}"),
        (SERIES, 'match[]={job!="a"}'),
        (SERIES, 'match[]={job=~"a.*"}'),
        (SERIES, "match[]=up&match[]=down"),
        (SERIES, 'match[]={a="b+c"}'),
        (LABEL_NAMES, "start=1&start=2"),
        (LABEL_NAMES, "start=2&end=1"),
        (LABEL_NAMES, "start=1.5"),
        (LABEL_NAMES, "start="),
        (LABEL_NAMES, "timeout=5s"),
        (LABEL_NAMES, "end=9999999999999"),
    ],
)
def test_whatever_else_there_is_is_left_to_the_general_way(kind: str, query: str) -> None:
    assert plain_question(kind, "", query, MOST) is None

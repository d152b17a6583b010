"""Parameters of requests, in URLs and forms."""

from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlencode

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from strandline.index.matchers import Matcher, MatchOp
from strandline.node.http.errors import BadParameter
from strandline.node.http.headers import Headers
from strandline.node.http.parameters import (
    MAX_PARAMETERS,
    MAX_SELECTOR_LENGTH,
    MAX_SELECTORS,
    Parameters,
    parameters_of,
    parameters_of_url,
)
from strandline.node.http.requests import Body, Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.http.times import EARLIEST_MS, LATEST_MS
from strandline.node.query.answer_memory import AnswerMemory
from strandline.time_range import TimeRange
from support.http_servers import Reply, Served, in_loop, served

pytestmark = pytest.mark.unit


def given_as(*pairs: tuple[str, str]) -> Parameters:
    return Parameters(pairs)


async def echo(request: Request) -> Response:
    return Response(orjson.dumps((await parameters_of(request)).pairs))


async def echo_url(request: Request) -> Response:
    return Response(orjson.dumps([parameters_of_url(request).pairs, len(await request.body.read())]))


ROUTES = (
    Route(("GET", "POST"), "/echo", echo, Access.READ),
    Route(("POST",), "/echo-url", echo_url, Access.READ),
)


def exchange(send: Callable[[Served], object]) -> Reply:
    async def test() -> Reply:
        async with served(ROUTES) as serving:
            return await send(serving)

    return in_loop(test())


def pairs_of(reply: Reply) -> list[tuple[str, str]]:
    assert reply.status == 200, reply.body
    return [tuple(pair) for pair in orjson.loads(reply.body)]


def test_parameters_are_read_from_the_url() -> None:
    reply = exchange(lambda serving: serving.get("/echo?a=1&b=%C3%A9+x&a=2&c=&d"))
    assert pairs_of(reply) == [("a", "1"), ("b", "é x"), ("a", "2"), ("c", ""), ("d", "")]


def test_parameters_of_a_form_precede_those_of_the_url() -> None:
    reply = exchange(lambda serving: serving.post("/echo?a=url", data={"a": "form", "b": "é"}))
    assert pairs_of(reply) == [("a", "form"), ("b", "é"), ("a", "url")]


def test_an_empty_post_has_the_parameters_of_its_url() -> None:
    assert pairs_of(exchange(lambda serving: serving.post("/echo?a=1"))) == [("a", "1")]


_TYPE = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("body", "headers", "status", "fault"),
    [
        (b"{}", {"Content-Type": "application/json"}, 415, "application/json"),
        (b"a=1", {"Content-Type": _TYPE, "Content-Encoding": "gzip"}, 415, "compressed"),
        (b"a=\xff", {"Content-Type": _TYPE}, 400, "not ASCII"),
        (b"a=%ff", {"Content-Type": _TYPE}, 400, "not UTF-8"),
        (b"a=1&" * (MAX_PARAMETERS + 1), {"Content-Type": _TYPE}, 400, f"more than {MAX_PARAMETERS}"),
        (b"a=" + b"x" * 200_000, {"Content-Type": _TYPE}, 413, "200002 bytes"),
    ],
)
def test_a_form_that_can_not_be_read_is_refused(body: bytes, headers: dict[str, str], status: int, fault: str) -> None:
    reply = exchange(lambda serving: serving.post("/echo", data=body, headers=headers))
    assert reply.status == status
    assert fault in orjson.loads(reply.body)["error"]


def test_a_url_that_is_not_utf8_is_refused() -> None:
    async def test() -> bytes:
        async with served(ROUTES) as serving:
            return await serving.raw(b"GET /echo?a=%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    answer = in_loop(test())
    assert b" 400 " in answer.splitlines()[0]
    assert b"not UTF-8" in answer


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=8)), max_size=5).filter(bool))
def test_escaped_parameters_are_unescaped(pairs: list[tuple[str, str]]) -> None:
    encodable = [(name, value) for name, value in pairs if name.isprintable() and not _surrogates(name + value)]
    form = urlencode(encodable, quote_via=quote)

    async def test() -> Reply:
        async with served(ROUTES) as serving:
            return await serving.post("/echo", data=form.encode(), headers={"Content-Type": _TYPE})

    assert pairs_of(in_loop(test())) == encodable


def _surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def test_of_a_repeated_single_parameter_the_first_counts() -> None:
    parameters = given_as(("a", "1"), ("a", "2"), ("b", ""))
    assert parameters.text("a") == "1"
    assert parameters.all("a") == ["1", "2"]
    assert parameters.text("b") is None
    assert parameters.text("c") is None


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_missing_required_parameter_is_named(name: str) -> None:
    with pytest.raises(BadParameter, match=f'"{name}" is missing'):
        given_as(("empty", "")).required(name)
    with pytest.raises(BadParameter, match=f'"{name}" is missing'):
        given_as(("empty", "")).time(name)
    with pytest.raises(BadParameter, match=f'"{name}" is missing'):
        given_as(("empty", "")).duration(name)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("start", "yesterday", lambda parameters: parameters.time("start")),
        ("step", "5 minutes", lambda parameters: parameters.duration("step")),
        ("timeout", "0", lambda parameters: parameters.timeout_s()),
        ("timeout", "-5s", lambda parameters: parameters.timeout_s()),
        ("timeout", "soon", lambda parameters: parameters.timeout_s()),
        ("limit", "-1", lambda parameters: parameters.limit(10)),
        ("limit", "many", lambda parameters: parameters.limit(10)),
        ("limit", "1.5", lambda parameters: parameters.limit(10)),
        ("limit", "9" * 30, lambda parameters: parameters.limit(10)),
        ("match[]", "{", lambda parameters: parameters.selectors(required=True)),
        ("match[]", "{}", lambda parameters: parameters.selectors(required=True)),
        ("match[]", '{a=~".*"}', lambda parameters: parameters.selectors(required=False)),
        ("match[]", 'up{a=~"("}', lambda parameters: parameters.selectors(required=True)),
        ("match[]", "", lambda parameters: parameters.selectors(required=False)),
        ("match[]", "sum(up)", lambda parameters: parameters.selectors(required=False)),
        ("match[]", "a" * (MAX_SELECTOR_LENGTH + 1), lambda parameters: parameters.selectors(required=False)),
    ],
)
def test_an_invalid_value_is_400_and_named(name: str, value: str, read: Callable[[Parameters], object]) -> None:
    with pytest.raises(BadParameter) as refused:
        read(given_as((name, value)))
    assert f'"{name}"' in refused.value.message
    assert (refused.value.status, refused.value.kind) == (400, "bad_data")
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    ("written", "maximum", "default", "expected"),
    [(None, 10, None, 10), ("0", 10, None, 10), ("3", 10, None, 3), ("30", 10, None, 10), (None, 100, 10, 10),
     ("50", 100, 10, 50), (None, 5, 10, 5)],
)  # fmt: skip
def test_a_limit_never_exceeds_the_maximum(
    written: str | None, maximum: int, default: int | None, expected: int
) -> None:
    pairs = () if written is None else (("limit", written),)
    assert given_as(*pairs).limit(maximum, default=default) == expected


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ((), None),
        ((("start", "1"),), TimeRange(1000, LATEST_MS)),
        ((("end", "1"),), TimeRange(EARLIEST_MS, 1000)),
        ((("start", "1"), ("end", "1")), TimeRange(1000, 1000)),
    ],
)
def test_either_end_of_a_range_may_be_left_out(pairs: tuple[tuple[str, str], ...], expected: TimeRange | None) -> None:
    assert given_as(*pairs).time_range() == expected


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(BadParameter, match='"end" lies before "start"'):
        given_as(("start", "2"), ("end", "1")).time_range()


def test_selectors_are_read_each_once() -> None:
    selectors = given_as(("match[]", "up"), ("match[]", 'up{a="b"}'), ("match[]", " up ")).selectors(required=True)
    name = Matcher("__name__", MatchOp.EQUAL, "up")
    assert selectors == ((name,), (name, Matcher("a", MatchOp.EQUAL, "b")))


def test_no_selector_is_refused_only_where_one_is_needed() -> None:
    assert given_as().selectors(required=False) == ()
    with pytest.raises(BadParameter, match=r'no "match\[\]" is given'):
        given_as().selectors(required=True)


def test_the_number_of_selectors_is_bounded() -> None:
    given_as(*[("match[]", "up")] * MAX_SELECTORS).selectors(required=True)
    with pytest.raises(BadParameter, match=f"at most {MAX_SELECTORS}"):
        given_as(*[("match[]", "up")] * (MAX_SELECTORS + 1)).selectors(required=True)


def test_a_timeout_below_a_millisecond_is_not_called_zero() -> None:
    with pytest.raises(BadParameter, match=r"shorter than a millisecond: '0\.0001'"):
        given_as(("timeout", "0.0001")).timeout_s()
    assert given_as(("timeout", "0.0009")).timeout_s() == 0.001


def test_a_timeout_is_read_in_seconds() -> None:
    assert given_as(("timeout", "1m30s")).timeout_s() == 90
    assert given_as(("timeout", "2.5")).timeout_s() == 2.5
    assert given_as().timeout_s() is None


def test_a_body_that_is_not_a_form_is_not_read_for_parameters() -> None:
    reply = exchange(lambda serving: serving.post("/echo-url?a=1", data=b"\xff\xfe", headers={"Content-Type": "x/y"}))
    assert orjson.loads(reply.body) == [[["a", "1"]], 2]


@given(st.lists(st.text(st.sampled_from("ab=%&2Dd0+;/?"), max_size=6), max_size=5).map("&".join))
def test_parameters_are_parsed_like_by_urllib(query: str) -> None:
    request = Request("GET", f"/?{query}", Headers({}), Body(0, lambda: None), AnswerMemory(0).lease())
    try:
        expected = parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        with pytest.raises(BadParameter, match="not UTF-8"):
            parameters_of_url(request)
    else:
        assert list(parameters_of_url(request).pairs) == expected


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        ("a=%7Bb%3D%22c%22%7D&d", [("a", '{b="c"}'), ("d", "")]),
        ("&&a=b=c", [("a", "b=c")]),
        ("a+b=c%2Bd", [("a b", "c+d")]),
        ("a=%zz", [("a", "%zz")]),
        ("a=%2", [("a", "%2")]),
        ("a=%00", [("a", "\0")]),
        ("a;b=c;d", [("a;b", "c;d")]),
    ],
)
def test_escapes_are_decoded_and_invalid_ones_stay(query: str, pairs: list[tuple[str, str]]) -> None:
    assert pairs_of(exchange(lambda serving: serving.get(URL(f"/echo?{query}", encoded=True)))) == pairs

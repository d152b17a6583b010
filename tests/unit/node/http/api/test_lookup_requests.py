"""Requests that are read straight into a question ask for what the general way reads; and nothing is read, or written,
that lies outside.
"""

import re
from itertools import cycle
from urllib.parse import quote, urlencode

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import _NO_METRIC_NAMES
from strandline.node.http.api.kernels.lookup_requests import MOST_MATCHERS, NO_METRIC_NAMES, ROOM, read_lookup
from strandline.node.http.api.lookups import READERS
from strandline.node.http.errors import BadParameter
from strandline.node.http.parameters import parameters_of_whole
from strandline.node.http.times import EARLIEST_MS, LATEST_MS
from strandline.node.http.whole_requests import RequestReader
from strandline.node.query.asks import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    LabelNamesAsk,
    LabelValuesAsk,
    Lookup,
    SeriesAsk,
)
from strandline.node.query.plain_lookups import KINDS
from strandline.time_range import TimeRange
from support.lookup_questions import ALWAYS, LookupQuestion

pytestmark = pytest.mark.unit

MOST = 1000
FIELDS = b"Host: localhost\r\nAccept: */*\r\n\r\n"
GUARD, UNTOUCHED = 64, 0xA5
PATH = re.compile("/api/v1/(?:(series)|(labels)|label/([^/]+)/values)")


def outcome(request: bytes, behind: bytes = b"") -> tuple[int, int, bytes]:
    """Read a request behind which others' bytes lie: where its line ends, how many results are wanted, the question."""
    room = ROOM * len(request)
    out = np.full(room + GUARD, UNTOUCHED, dtype=np.uint8)
    data = np.array(bytearray(request + behind), dtype=np.uint8)
    line_end, question_end, kind, wanted = read_lookup(data, len(request), MOST, out)
    assert (out[room:] == UNTOUCHED).all(), "it has written behind the room that there is"
    if not line_end:
        assert (question_end, kind, wanted) == (0, 0, 0)
        return 0, 0, b""
    assert (out[question_end:] == UNTOUCHED).all(), "it has written behind the question"
    frame = out[:question_end].tobytes()
    question = LookupQuestion.of(frame)
    assert (question.kind, question.limit) == (KINDS[kind], wanted)
    return line_end, wanted, frame


def asked(request: bytes) -> Lookup | None:
    """What the kernel reads; None if it leaves a request to others."""
    line_end, _, frame = outcome(request)
    if not line_end:
        return None
    assert request[:line_end].endswith(b" HTTP/1.1\r\n")
    assert request.count(b"\n", 0, line_end) == 1
    question = LookupQuestion.of(frame)
    selectors = tuple(
        tuple(Matcher(label, MatchOp.EQUAL, value) for label, value in matchers) for matchers in question.selectors
    )
    within = TimeRange(*question.within) if question.within != ALWAYS else None
    if question.kind == LABEL_VALUES:
        return LabelValuesAsk(question.label, selectors, within, question.limit)
    assert question.label == ""
    ask = SeriesAsk if question.kind == SERIES else LabelNamesAsk
    return ask(selectors, within, question.limit)


def generally(request: bytes) -> Lookup | None:
    """What the general way reads; None if it refuses, or has to ask aiohttp what is meant."""
    line, end, _ = request.partition(b"\r\n")
    whole = RequestReader().read(line + end + FIELDS)
    path = PATH.fullmatch(whole.path) if whole is not None else None
    if whole is None or path is None or whole.method != "GET":
        return None
    series, names, label = path.groups()
    kind = SERIES if series else LABEL_NAMES if names else LABEL_VALUES
    try:
        return READERS[kind](parameters_of_whole(whole), label or "", MOST)
    except BadParameter:
        return None


def check(request: bytes) -> None:
    ask = asked(request)
    assert ask is None or ask == generally(request)


def get(query: bytes | str, path: str = "series") -> bytes:
    query = query if isinstance(query, bytes) else query.encode()
    return b"GET /api/v1/%s?%s HTTP/1.1\r\n%s" % (path.encode(), query, FIELDS)


def escaped(text: str, safe: str = "", *, lower: bool = False) -> str:
    """As clients do it, of which some leave more as it is, and some write the numbers in lower case."""
    return re.sub("%..", lambda code: code[0].lower() if lower else code[0], quote(text, safe))


def selector(name: str, matchers: list[tuple[str, str, str]], comma: str = "") -> str:
    inside = ",".join(f'{label}{op}"{value}"' for label, op, value in matchers)
    return f"{name}{{{inside}{comma}}}" if matchers or comma else name


def some(plain: tuple[str, ...], odd: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """One of these, or less often one of those."""
    return st.sampled_from((*plain, *plain, *odd))


NAMES = ("", "up", "a:b", ":", "onn", "_9", "__name__")
ODD_NAMES = ("on", "Inf", "NaN", "bOOl", "group_left", "ATAN2", "9a", "é", "a b", "a-b", "|", "on|inf")
LABELS = ("job", "_", "a9", "instance", "x__name__")
ODD_LABELS = ("__name__", "__name__", "", "9", "a:b", "é", " a", "a ", "a-b")
VALUES = ("a", "host:9100", "a b", "a+b", "a&b=c", "%41", "a,b}", "[x]", "it's", "~", "#", "/?", "x" * 300)
ODD_VALUES = ("", "", 'x"y', 'x\\"y', "\\", "é", "\n", "\x7f", "\x00", "\t")
PATHS = ("series", "labels", "label/job/values", "label/__name__/values", "label/a.b/values", "label/a-b:9/values")
ODD_PATHS = ("label/U__x/values", "label/U__/values", "label//values", "label/a%41/values", "label/é/values", "query")
NUMBERS = ("0", "1", "007", "999", "1000", "1001", "1794879561", "9" * 12)
ODD_NUMBERS = ("", "1" * 13, "-1", "1.5", "1e3", "+1", "%31", " 1", "٣", "1x", "2026-11-17T10:00:00Z")
MATCH, ODD_MATCH = ("match[]", "match%5B%5D", "match%5b]", "match[%5D"), ("match", "match[", "match]]", "%6Datch[]")

plain_selectors = st.builds(
    selector,
    some(NAMES[:-1]),
    st.lists(st.tuples(some(LABELS), st.just("="), some(VALUES)), max_size=4),
    st.just(""),
).filter(bool)
plain_queries = st.builds(
    lambda match, one, start, end, limit, order: "&".join(
        [
            part
            for part in (f"{match}={one}", f"start={start}", f"end={end}", f"limit={limit}")
            if not part.endswith("=None")
        ][:: 1 if order else -1]
    ),
    some(MATCH),
    st.builds(escaped, plain_selectors, some(("", '{}=",', ":/[]")), lower=st.booleans()),
    st.none() | st.integers(0, 10**11),
    st.none() | st.integers(10**11, 10**12 - 1),
    st.none() | some(NUMBERS),
    st.booleans(),
)
# Any byte of a value as it is, or escaped in either case.
ways = st.lists(st.sampled_from([b"%c", b"%c", b"%%%02X", b"%%%02x"]), min_size=1, max_size=5)
selectors = st.builds(
    selector,
    some(NAMES, ODD_NAMES),
    st.lists(
        st.tuples(some(LABELS, ODD_LABELS), some(("=", "="), ("!=", "=~", "!~", "", " =")), some(VALUES, ODD_VALUES)),
        max_size=3,
    ),
    some(("", ","), (",,", " ", ", ")),
)
values = st.builds(
    lambda text, ways: b"".join(way % one for one, way in zip(text.encode(), cycle(ways), strict=False)),
    selectors | st.text(st.sampled_from("ab_:{}\"=!~,\\ +%&\n'é"), max_size=12),
    ways,
)
parameters = st.one_of(
    st.builds(lambda name, value: name.encode() + b"=" + value, some(MATCH, ODD_MATCH), values),
    st.builds(
        lambda name, value: f"{name}{value}".encode(),
        some(("start=", "end=", "limit="), ("timeout=", "start", "x=", "Limit=")),
        some(NUMBERS, ODD_NUMBERS),
    ),
)
requests = st.builds(
    lambda query, path: get(b"&".join(query), path), st.lists(parameters, max_size=4), some(PATHS, ODD_PATHS)
) | st.builds(get, plain_queries, some(PATHS))
damaged = st.builds(
    lambda request, place, cut, noise: request[:place] + noise + request[place + cut :],
    requests,
    st.integers(0, 120),
    st.integers(0, 3),
    st.binary(max_size=3) | st.sampled_from([b"%", b"%4", b'"', b"\\", b"&", b"}", b",", b"[", b"=", b" ", b"\r\n"]),
)


@given(requests)
@example(get("match[]=up&start=2&end=1"))
@example(get("match[]=up&start=1&end=1&limit=0", "label/a.b/values"))
@example(get('match[]={__name__="on",__name__="up"}'))
@example(get('match[]={a="b#c"}'))
def test_what_is_read_is_what_the_general_way_reads(request: bytes) -> None:
    check(request)


@given(damaged)
def test_a_request_with_something_wrong_in_it_is_read_no_other_way(request: bytes) -> None:
    check(request)


@given(st.binary(max_size=60), some(PATHS, ODD_PATHS))
def test_arbitrary_bytes_are_read_no_other_way(noise: bytes, path: str) -> None:
    for request in (noise, get(noise, path), get(b"match[]=" + noise, path), get(b'match[]={a="%s"}' % noise, path)):
        check(request)


@given(plain_queries, some(PATHS))
def test_what_is_plain_is_read_however_it_is_written(query: str, path: str) -> None:
    request = get(query, path)
    ask = asked(request)
    assert ask is not None
    assert ask == generally(request)


@given(damaged, st.integers(0, 200), st.binary(max_size=40))
@example(get("match[]=", "labels"), 27, b"up HTTP/1.1\r\n")
def test_what_lies_behind_a_request_is_not_looked_at(request: bytes, cut: int, others: bytes) -> None:
    """The memory has the end of a longer request from before."""
    begun, rest = request[:cut], request[cut:]
    assert outcome(begun, rest + others) == outcome(begun, others) == outcome(begun)


LINES = [
    get('match[]=up{job="a",env="b"}&start=1&limit=5'),
    get("match%5B%5D=%7Bjob%3D%22a%22%2C%7D&end=1794886761", "label/job/values"),
    get("start=1&end=2&match[]=a:b", "labels"),
]


@pytest.mark.parametrize("request_bytes", LINES)
def test_a_line_that_is_cut_off_is_not_read(request_bytes: bytes) -> None:
    """Also where its rest lies in memory behind the end."""
    line_end = request_bytes.index(b"\r\n") + 2
    for cut in range(line_end):
        assert outcome(request_bytes[:cut], request_bytes[cut:]) == (0, 0, b""), request_bytes[:cut]
    assert outcome(request_bytes[:line_end])[0] == line_end


HOST = LookupQuestion(SERIES, [[("instance", "host:9100")]], limit=MOST)


@pytest.mark.parametrize(
    ("request_bytes", "question"),
    [
        # Grafana
        (
            get("match%5B%5D=up%7Bjob%3D%22a%22%7D&start=1794879561&end=1794886761"),
            LookupQuestion(SERIES, [[("__name__", "up"), ("job", "a")]], "", (1794879561000, 1794886761000), MOST),
        ),
        (
            get("start=1794879561&end=1794886761&match%5B%5D=up&limit=40000", "label/instance/values"),
            LookupQuestion(LABEL_VALUES, [[("__name__", "up")]], "instance", (1794879561000, 1794886761000), MOST),
        ),
        # curl, with -g, with --data-urlencode and as somebody types it
        (get('match[]=up{job="a"}'), LookupQuestion(SERIES, [[("__name__", "up"), ("job", "a")]], limit=MOST)),
        (get("match[]=%7Binstance%3D%22host%3A9100%22%7D"), HOST),
        (get("match[]={instance=%22host:9100%22}&limit=0"), HOST),
        # promtool
        (
            get("end=1794886761&match%5B%5D=up&start=1794879561", "labels"),
            LookupQuestion(LABEL_NAMES, [[("__name__", "up")]], "", (1794879561000, 1794886761000), MOST),
        ),
        # urllib and requests
        (get(urlencode({"match[]": '{instance="host:9100"}'})), HOST),
        (
            get(urlencode({"match[]": '{a="b",c="d",e="x&y=z",}', "limit": 7}), "labels"),
            LookupQuestion(LABEL_NAMES, [[("a", "b"), ("c", "d"), ("e", "x&y=z")]], limit=7),
        ),
        # One of the times alone
        (get("match[]=up&start=1"), LookupQuestion(SERIES, [[("__name__", "up")]], "", (1000, LATEST_MS), MOST)),
        (get("match[]=up&end=1"), LookupQuestion(SERIES, [[("__name__", "up")]], "", (EARLIEST_MS, 1000), MOST)),
    ],
)
def test_what_clients_send_is_read(request_bytes: bytes, question: LookupQuestion) -> None:
    line_end, _, frame = outcome(request_bytes)
    assert request_bytes[line_end:] == FIELDS
    assert frame == question.frame()
    assert asked(request_bytes) == generally(request_bytes)


def numbered(count: int) -> str:
    return ",".join(f'a{place}="b"' for place in range(count))


@pytest.mark.parametrize("name", ["", "up"])
def test_so_many_matchers_are_read_and_no_more(name: str) -> None:
    most = MOST_MATCHERS - bool(name)
    assert asked(get(f"match[]={name}{{{numbered(most)}}}")) is not None
    assert asked(get(f"match[]={name}{{{numbered(most + 1)}}}")) is None


@pytest.mark.parametrize(
    "query",
    [
        "",
        "limit=1",
        "match[]=",
        "match[]={}",
        "match[]=up{}",
        "match[]={,}",
        'match[]={a="b",,}',
        'match[]={a="b"',
        'match[]={a="b}',
        'match[]={a="b"}}',
        'match[]={a="b"}c',
        'match[]={a="b"c="d"}',
        'match[]={a=""}',
        'match[]={a="b",c=""}',
        'match[]={a!="b"}',
        'match[]={a=~"b"}',
        'match[]={a="b",c!~"d"}',
        "match[]={a='b'}",
        "match[]={a=`b`}",
        'match[]={"up"}',
        'match[]={"a"="b"}',
        'match[]={a="b\\\\c"}',
        'match[]={a="b%5Cnc"}',
        'match[]={a="b+c"}',
        'match[]={a="b#c"}',
        'match[]={%20a="b"}',
        'match[]=up%20{a="b"}',
        'match[]={a="%C3%A9"}',
        'match[]={a="é"}',
        'match[]={a="%0A"}',
        'match[]={a="%00"}',
        'match[]={a="%7F"}',
        'match[]={a="%4"}',
        'match[]={a="%4g"}',
        'match[]={9="b"}',
        'match[]={a:b="c"}',
        "match[]=9up",
        "match[]=a.b",
        'match[]=up{__name__="up"}',
        "match[]=up&match[]=up",
        "match[]=up&",
        "&match[]=up",
        "match[]=up&&limit=1",
        "match[]=up&start=1&start=1",
        "match[]=up&end=1&end=1",
        "match[]=up&limit=1&limit=1",
        "match[]=up&start=",
        "match[]=up&limit",
        "match[]=up&start=1.5",
        "match[]=up&start=-1",
        "match[]=up&limit=%31",
        "match[]=up&start=1000000000000",
        "match[]=up&limit=1000000000000",
        "match[]=up&start=2&end=1",
        "match[]=up&timeout=5s",
        "match=up",
        "%6Datch[]=up",
        *(f"match[]={escaped(name)}" for name in ("on", "Inf", "NaN", "bool", "BOOL", "Group_Left", "aTAN2")),
    ],
)
def test_whatever_is_not_plain_is_left_to_the_general_way(query: str) -> None:
    assert asked(get(query)) is None


@pytest.mark.parametrize("path", [*ODD_PATHS, "series/", "label/a/b/values", "label/job/value", "labels/values", "x"])
def test_other_paths_are_left_to_the_general_way(path: str) -> None:
    assert asked(get("match[]=up", path)) is None


@pytest.mark.parametrize(
    "line",
    [
        b"POST /api/v1/series?match[]=up HTTP/1.1\r\n",
        b"HEAD /api/v1/series?match[]=up HTTP/1.1\r\n",
        b"get /api/v1/series?match[]=up HTTP/1.1\r\n",
        b"GET  /api/v1/series?match[]=up HTTP/1.1\r\n",
        b"GET http://localhost/api/v1/series?match[]=up HTTP/1.1\r\n",
        b"GET /api/v1/series?match[]=up HTTP/1.0\r\n",
        b"GET /api/v1/series?match[]=up HTTP/1.1\n",
        b"GET /api/v1/series?match[]=up  HTTP/1.1\r\n",
        b"GET /api/v1/series?match[]=up\r\n",
        b"GET /api/v1/series HTTP/1.1\r\n",
    ],
)
def test_other_lines_are_left_to_the_general_way(line: bytes) -> None:
    assert asked(line + FIELDS) is None


def test_no_metric_has_a_name_that_means_something_else_in_promql() -> None:
    assert set(NO_METRIC_NAMES.tobytes().decode().strip("|").split("|")) == _NO_METRIC_NAMES
    for name in _NO_METRIC_NAMES:
        for spelled in (name, name.upper(), name.title()):
            assert asked(get(f"match[]={spelled}")) is None
            assert asked(get(f'match[]={spelled}{{a="b"}}')) is None
            assert asked(get(f"match[]={spelled}_")) is not None
            assert asked(get(f'match[]={{__name__="{spelled}"}}')) is not None

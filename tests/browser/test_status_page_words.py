"""How the page's modules write numbers and times and edit selectors and queries, in a real browser."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from strandline.index.matchers import Matcher, MatchOp
from strandline.index.selectors import parse_selector
from strandline.node.page.assets import load_assets
from strandline.promql.expressions import VectorSelector
from strandline.promql.parser import parse
from support.fake_queries import FakeQueries
from support.page_node import PageNode

pytestmark = pytest.mark.browser

THIN = "\u202f"
RUN = """async ([path, name, calls]) => {
    const module = await import(path);
    return calls.map(given => module[name](...given));
}"""


@pytest.fixture(scope="module")
def modules(browser: Browser) -> Iterator[Page]:
    with PageNode(FakeQueries()) as node:
        page = browser.new_page()
        page.goto(node.url)
        yield page
        page.close()


def called(page: Page, module: str, name: str, *calls: tuple[object, ...]) -> list[Any]:
    """A function of a module, once for each list of arguments."""
    path = f"/page/{load_assets().digest}/{module}.js"
    found: list[Any] = page.evaluate(RUN, [path, name, [list(given) for given in calls]])
    return found


COUNTS = {
    0: "0",
    7: "7",
    999: "999",
    1000: "1 k",
    1234: "1.2 k",
    12_345: "12.3 k",
    99_949: "99.9 k",
    123_456: "123 k",
    999_499: "999 k",
    999_950: "1 M",
    1_250_000: "1.3 M",
    10**9: "1 G",
    25 * 10**11: "2.5 T",
    0.25: "0.3",
    1234.5: "1.2 k",
}


def test_counts_are_abbreviated(modules: Page) -> None:
    shown = called(modules, "format", "count", *((number,) for number in COUNTS), (None,))
    assert [text.replace(THIN, " ") for text in shown] == [*COUNTS.values(), "\u2013"]


DURATIONS = {
    0: "0 s",
    0.4: "0 s",
    59.4: "59 s",
    60: "1 min",
    200: "3 min 20 s",
    3600: "1 h",
    7500: "2 h 5 min",
    273_600: "3 d 4 h",
}


def test_durations_have_at_most_two_units(modules: Page) -> None:
    shown = called(modules, "format", "duration", *((seconds,) for seconds in DURATIONS))
    assert [text.replace(THIN, " ") for text in shown] == list(DURATIONS.values())


def test_times_are_utc_in_every_time_zone(browser: Browser, modules: Page) -> None:
    context = browser.new_context(timezone_id="Asia/Tokyo")
    page = context.new_page()
    page.goto(modules.url)
    [shown] = called(page, "format", "moment", (1_794_736_800_000,))
    [hours] = called(page, "format", "span", (1_794_736_800_000, 1_794_740_400_000))
    [local] = called(page, "format", "local", (1_794_736_800_000,))
    context.close()
    assert shown == "2026-11-15 10:00:00 UTC"
    assert hours == "2026-11-15 10:00\u201311:00 UTC"
    assert "7:00" in local


def test_values_of_samples_keep_their_significant_digits(modules: Page) -> None:
    given = [0, 1, 0.1 + 0.2, 1234567.25, 1e-7, 1.5e20, -2.5]
    assert called(modules, "format", "value", *((number,) for number in given)) == [
        "0",
        "1",
        "0.3",
        "1,234,567.3",
        "1e-7",
        "1.5e+20",
        "-2.5",
    ]


SELECTORS = [
    "",
    "up",
    "job:rate:5m",
    "up{}",
    '{job="a"}',
    'up{job="a",}',
    "up { job = 'a' , x!~`b\\.c` } # why",
    'up{job=~"a|b", instance!=""}',
    '{"metric.name", "label.name"="x"}',
    '{__name__="up", job="a"}',
    '{"quoted\\"name"="x"}',
]
VALUES = ["a", "", 'qu"ote', "back\\slash", "new\nline", "`", "'", "{}", "\u202ebidi", "\U0001f980", "\x00\x7f", "<b>"]


def test_the_node_parses_an_added_matcher_as_intended(modules: Page) -> None:
    calls = [
        (text, label, value) for text in SELECTORS for label in ("job", "new.label", 'quoted"name') for value in VALUES
    ]
    for (text, label, value), written in zip(calls, called(modules, "selector", "withMatcher", *calls), strict=True):
        before = parse_selector(text) if text else ()
        kept = {matcher for matcher in before if matcher.label != label}
        assert set(parse_selector(written)) == kept | {Matcher(label, MatchOp.EQUAL, value)}, (text, written)


def test_a_chosen_metric_replaces_the_previous_one(modules: Page) -> None:
    calls = [(text, "__name__", name) for text in SELECTORS for name in ("down", "nan", "with.dot", "on")]
    for (text, label, name), written in zip(calls, called(modules, "selector", "withMatcher", *calls), strict=True):
        kept = {matcher for matcher in (parse_selector(text) if text else ()) if matcher.label != label}
        assert set(parse_selector(written)) == kept | {Matcher("__name__", MatchOp.EQUAL, name)}, (text, written)


@pytest.mark.parametrize(
    "text", ["up{", "up}", "sum(up)", "up{job}", "up{job=a}", 'up{job="a}', "up up", "1", 'up{a="b" c="d"}']
)
def test_nothing_is_added_to_an_invalid_selector(modules: Page, text: str) -> None:
    assert called(modules, "selector", "withMatcher", (text, "job", "a")) == [None]


def test_a_step_fits_the_width_and_the_range(modules: Page) -> None:
    calls = [(seconds, width) for seconds in (60, 900, 3600, 86_400, 604_800, 10**8) for width in (300, 700, 1200)]
    for (seconds, width), step in zip(calls, called(modules, "plot", "stepFor", *calls), strict=True):
        assert step >= 1
        # No more than a point every other pixel.
        assert seconds / step <= width / 2 + 1


QUERIES = {
    "up": ["up"],
    "sum by (job) (rate(c{a='}'}[5m] offset 1h)) / on(job) group_left(x) {\"my.metric\"}": [
        "c{a='}'}",
        '{"my.metric"}',
    ],
    "max_over_time(sum(rate(a:b[5m]))[1h:1m]) and up unless bool_metric > bool 1 # comment": [
        "a:b",
        "up",
        "bool_metric",
    ],
    'label_replace(up, "dst", "$1", "src", "(.*)") + time()': ["up"],
    "sum without (x) (a) > 1e3": ["a"],
    "vector(1)": [],
}


def test_the_selectors_of_a_query_are_found(modules: Page) -> None:
    assert called(modules, "promql", "selectorTexts", *((query,) for query in QUERIES)) == list(QUERIES.values())


def matchers_of(query: str) -> list[set[Matcher]]:
    """Of each selector, by the node's own parser."""
    found, left = list[set[Matcher]](), list[object]([parse(query)])
    while left:
        node = left.pop()
        if isinstance(node, VectorSelector):
            found.append(set(node.matchers))
        elif isinstance(node, tuple):
            left += node
        elif is_dataclass(node):
            left += [getattr(node, field.name) for field in fields(node)]
    return found


def test_a_chosen_value_narrows_every_selector_of_the_query(modules: Page) -> None:
    calls = [(query, "zone", 'a "b"') for query, selectors in QUERIES.items() if selectors]
    for (query, label, value), written in zip(calls, called(modules, "promql", "narrowed", *calls), strict=True):
        added = Matcher(label, MatchOp.EQUAL, value)
        before, after = matchers_of(query), matchers_of(written)
        assert after == [matchers | {added} for matchers in before], written


def test_a_chosen_metric_replaces_the_only_metric_or_else_the_query(modules: Page) -> None:
    calls = [("rate(a{x='y'}[5m])", "__name__", "b"), ("a / c", "__name__", "b"), ("", "__name__", "b")]
    assert called(modules, "promql", "narrowed", *calls) == ["rate(b{x='y'}[5m])", "b", "b"]
    assert called(modules, "promql", "narrowed", ("vector(1)", "job", "x")) == [None]


# A bar marks the position of the cursor.
CONTEXTS = {
    "|": ("expression", ""),
    "ra|": ("expression", "ra"),
    "rate(c|": ("expression", "c"),
    "sum by (j|": ("label", "j"),
    "a / on(|": ("label", ""),
    "up{|": ("label", ""),
    'up{a="b", jo|': ("label", "jo"),
    'up{a="b|"}': ("value", "b"),
    'up{a="|': ("value", ""),
    'up{a=~"x|y|': ("value", "x|y"),
    "up[5|": ("duration", "5"),
    "up offset |": ("duration", ""),
    "up @ st|": ("at", "st"),
    "up # com|": None,
    'label_join(up, "na|me"': None,
    'up{a="b"|': None,
    "12|": None,
}


def test_completions_depend_on_the_position_of_the_cursor(modules: Page) -> None:
    calls = [(text[: (at := text.rindex("|"))] + text[at + 1 :], at) for text in CONTEXTS]
    found = called(modules, "promql", "contextAt", *calls)
    assert [context and (context["kind"], context["prefix"]) for context in found] == list(CONTEXTS.values())

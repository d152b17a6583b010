"""Templates: rendered messages, and the errors of invalid templates."""

import json
from dataclasses import replace
from typing import Any

import pytest

from strandline.jobs.sending.series import SentSeries
from strandline.jobs.sending.template import MessageTemplate, NotRendered, TemplateUnusable

pytestmark = pytest.mark.unit

HOSTILE = 'a"b\\c\n\u2028é{host}'
SERIES = SentSeries(1, {"__name__": "up", "host": HOSTILE, "empty": ""}, 1000, 5500, 5000, 0.25)


def value(template: Any, series: SentSeries = SERIES, **rest: Any) -> Any:
    return json.loads(MessageTemplate.from_table({"value": template, **rest}).render(series).value)


def test_json_contains_any_label_unchanged() -> None:
    assert value({"host": "{host}", "all": ["<{host}>", {"n": "{__name__}"}]}) == {
        "host": HOSTILE,
        "all": [f"<{HOSTILE}>", {"n": "up"}],
    }


def test_a_field_alone_keeps_its_type_in_json() -> None:
    template = {"v": "{$value}", "t": "{$time}", "s": "{$start}", "e": "{$end}", "text": "{$value} at {$time}", "c": 3}
    assert value(template) == {"v": 0.25, "t": 5000, "s": 1000, "e": 5500, "text": "0.25 at 5000", "c": 3}
    assert value("{$labels}") == dict(SERIES.labels)
    assert value({"t": "{$time}"}, times="rfc3339") == {"t": "1970-01-01T00:00:05.000Z"}


@pytest.mark.parametrize(("number", "shown"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (-float("inf"), "-Inf")])
def test_numbers_that_json_can_not_represent_are_strings(number: float, shown: str) -> None:
    assert value("{$value}", replace(SERIES, value=number)) == shown


def test_text_key_and_headers() -> None:
    table = {"format": "text", "value": "{{{host}}} {$value}", "key": "{__name__}", "headers": {"h": "x-{$end}"}}
    message = MessageTemplate.from_table(table).render(SERIES)
    assert (message.value.decode(), message.key) == (f"{{{HOSTILE}}} 0.25", b"up")
    assert message.headers == [("h", b"x-5500")]


@pytest.mark.parametrize("label", ["dc", "empty"])
def test_a_label_that_is_missing_has_its_default_or_makes_the_series_bad(label: str) -> None:
    assert value(f"{{{label}}}", defaults={label: "unknown"}) == "unknown"
    with pytest.raises(NotRendered, match=f"it has no label {label}, and the template has no default for {label}"):
        value(f"{{{label}}}")


def test_a_series_without_a_sample_has_no_value() -> None:
    without = replace(SERIES, time=None, value=None)
    assert value("{$value}", without, defaults={"$value": "-"}) == "-"
    with pytest.raises(NotRendered, match="no sample at that time"):
        value("{$time}", without)


@pytest.mark.parametrize(
    ("field", "needs_samples"), [("{$value}", True), ("{$time}", True), ("{$end}", False), ("{a}", False)]
)
def test_samples_are_read_only_if_a_field_needs_them(field: str, needs_samples: bool) -> None:
    assert MessageTemplate.from_table({"value": {"x": [field]}}).needs_newest is needs_samples


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        ({}, "it has no value"),
        ({"value": "x", "vlaue": "y"}, "unknown key 'vlaue'"),
        ({"value": "{$nothing}"}, r"'\\{\\$nothing\\}', which is not a field"),
        ({"value": "a } b"}, "'}', which is not a field"),
        ({"value": "{}"}, "'{}', which is not a field"),
        ({"value": "x", "format": "xml"}, "format = 'xml'"),
        ({"value": {"a": 1}, "format": "text"}, "its value must be a string"),
        ({"value": "x", "key": 3}, "key = 3 must be a string"),
        ({"value": "x", "headers": {"a": 1}}, "headers must be a table of strings"),
        ({"value": "x", "headers": {"strandline-job": "1"}}, "begins with strandline-"),
        ({"value": "x", "defaults": {"dc": "1"}}, "a default for 'dc', which it does not use"),
        ({"value": 2**60}, "JSON can't represent exactly"),
    ],
)
def test_errors_in_a_template_are_named(table: dict[str, Any], fault: str) -> None:
    with pytest.raises(TemplateUnusable, match=fault.replace("\\\\", "\\")):
        MessageTemplate.from_table(table)

import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from strandline.errors import Fatal
from strandline.jobs.formats.csv_mapping import csv_options, first_row
from strandline.jobs.formats.csv_options import CsvOptions, CsvValue
from strandline.jobs.formats.time_formats import PatternTime, Rfc3339Time, UnixTime

pytestmark = pytest.mark.unit

NAMES = ("at", "host", "dc", "usage", "temp")
SIMPLE: dict[str, Any] = {"metric": "cpu", "value": "usage", "time": {"column": "at", "unit": "s"}}


def options(text: str, names: tuple[str, ...] = NAMES) -> CsvOptions:
    return csv_options(tomllib.loads(text), names)


def refusal(mapping: Mapping[str, object], names: tuple[str, ...] = NAMES) -> str:
    with pytest.raises(Fatal) as caught:
        csv_options(mapping, names)
    assert caught.value.remedy
    return str(caught.value)


def test_columns_are_found_by_the_headers_names() -> None:
    found = options("""
        metric = "cpu_usage"
        value = "usage"
        time = {column = "at", unit = "ms"}
        labels = {instance = "host", dc = 3}
        constants = {env = "prod"}
        delimiter = ";"
        quote = "'"
        multiline = true
        """)
    assert found == CsvOptions(
        columns=5,
        values=(CsvValue(3, "cpu_usage"),),
        time_column=0,
        time=UnixTime("ms"),
        labels=(("instance", 1), ("dc", 2)),
        constants=(("env", "prod"),),
        delimiter=";",
        quote="'",
        header=True,
        multiline=True,
    )


def test_without_a_header_columns_are_numbers_from_1() -> None:
    found = options("""
        metric = {column = 2}
        value = 4
        time = {column = 1, format = "rfc3339"}
        labels = {dc = 3}
        header = false
        """)
    assert found == CsvOptions(5, (CsvValue(3, 1),), 0, Rfc3339Time(), (("dc", 2),))


def test_values_without_a_metric_have_their_columns_names() -> None:
    found = options("""
        values = ["usage", {column = "temp", metric = "temperature"}]
        time = {column = "at", format = "%d.%m.%Y %H:%M", timezone = "Europe/Berlin"}
        labels = ["host", "dc"]
        """)
    assert found.values == (CsvValue(3, "usage"), CsvValue(4, "temperature"))
    assert found.time == PatternTime("%d.%m.%Y %H:%M", "Europe/Berlin")
    assert found.labels == (("host", 1), ("dc", 2))


def test_a_missing_column_is_named_with_the_existing_ones() -> None:
    message = refusal({**SIMPLE, "labels": {"instance": "hots"}})
    assert "labels.instance" in message
    assert "'hots'" in message
    assert "at, host, dc, usage, temp" in message
    assert "column 6" in refusal({**SIMPLE, "value": 6})
    assert "column 0" in refusal({**SIMPLE, "value": 0})


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"vlaue": "usage"}, "'vlaue'"),
        ({"values": ["usage"]}, "either value or values"),
        ({"value": {"column": "usage", "unit": "s"}}, "'unit'"),
        ({"value": True}, "not a column"),
        ({"metric": ""}, "metric = ''"),
        ({"metric": 7}, "metric = 7"),
        ({"metric": {"column": "nope"}}, "'nope'"),
        ({"time": "at"}, "time = 'at'"),
        ({"time": {"column": "at"}}, "either a unit or a format"),
        ({"time": {"column": "at", "unit": "s", "format": "rfc3339"}}, "either a unit or a format"),
        ({"time": {"column": "at", "unit": "h"}}, "'h'"),
        ({"time": {"column": "at", "unit": "s", "timezone": "UTC"}}, "no local times"),
        ({"time": {"column": "at", "format": "%Y%m%d%z", "timezone": "UTC"}}, "both %z and a timezone"),
        ({"time": {"column": "at", "format": "%Q"}}, "%Q"),
        ({"labels": "host"}, "labels = 'host'"),
        ({"labels": {"__name__": "host"}}, "'__name__' twice"),
        ({"labels": {"": "host"}}, "labels = ''"),
        ({"labels": ["host"], "constants": {"host": "x"}}, "'host' twice"),
        ({"constants": {"env": 1}}, "constants.env = 1"),
        ({"constants": ["env"]}, "constants = ['env']"),
        ({"delimiter": "||"}, "delimiter '||'"),
        ({"delimiter": '"'}, "both"),
        ({"quote": 1}, "quote = 1"),
        ({"header": "yes"}, "header = 'yes'"),
        ({"header": False}, "no header"),
    ],
)
def test_a_mapping_that_can_not_be_used_is_refused_by_name(change: dict[str, object], part: str) -> None:
    assert part in refusal({**SIMPLE, **change})


def test_a_name_of_two_columns_is_refused() -> None:
    assert "which exists 2 times" in refusal(SIMPLE, ("at", "usage", "usage"))


def test_a_file_without_columns_is_refused() -> None:
    assert "no columns" in refusal(SIMPLE, ())


def test_the_first_row_is_read_with_the_mappings_delimiter_and_quote() -> None:
    assert first_row(b'\xef\xbb\xbf"a,b",c\r\n1,2\r\n', {}) == ("a,b", "c")
    assert first_row(b"\n'a;b';c", {"delimiter": ";", "quote": "'"}) == ("a;b", "c")
    assert first_row(b'"a",b\n', {"quote": ""}) == ('"a"', "b")
    assert first_row(b"", {}) == ()

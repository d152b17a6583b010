"""Mappings from options are equivalent to those in files."""

from typing import Any

import pytest

from strandline.jobs.formats.csv_mapping import csv_options
from strandline.jobs.formats.parquet.mapping import ParquetMapping
from strandline.jobs.importing.spec import Format
from strandline.node.bulk.mapping_options import MappingOptions, MappingOptionUnusable

pytestmark = pytest.mark.unit

COLUMNS = ("at", "host", "dc", "usage", "temp", "name")


@pytest.mark.parametrize(
    ("options", "mapping"),
    [
        (
            MappingOptions("cpu", None, ["usage"], "at:s", None, ["host", "zone=3"], ["env=prod", "x=a=b"]),
            {
                "metric": "cpu",
                "value": "usage",
                "time": {"column": "at", "unit": "s"},
                "labels": {"host": "host", "zone": 3},
                "constants": {"env": "prod", "x": "a=b"},
            },
        ),
        (
            MappingOptions(None, "name", ["4"], "1:rfc3339"),
            {"metric": {"column": "name"}, "value": 4, "time": {"column": 1, "format": "rfc3339"}},
        ),
        (
            MappingOptions(None, None, ["usage", "temp=temperature"], "at:%d.%m.%Y %H:%M", "Europe/Berlin"),
            {
                "values": ["usage", {"column": "temp", "metric": "temperature"}],
                "time": {"column": "at", "format": "%d.%m.%Y %H:%M", "timezone": "Europe/Berlin"},
            },
        ),
    ],
)
def test_options_of_csv(options: MappingOptions, mapping: dict[str, Any]) -> None:
    assert csv_options(options.applied_to({}, Format.CSV), COLUMNS) == csv_options(mapping, COLUMNS)


def test_options_of_parquet() -> None:
    options = MappingOptions("cpu", values=["usage"], time="at", labels=["host", "zone=dc"], constants=["env=prod"])
    mapping = {
        "metric": "cpu",
        "value": "usage",
        "time": "at",
        "labels": {"host": "host", "zone": "dc"},
        "constants": {"env": "prod"},
    }
    assert ParquetMapping.from_table(options.applied_to({}, Format.PARQUET)) == ParquetMapping.from_table(mapping)


def test_options_replace_keys_of_the_file_and_leave_the_others() -> None:
    file = {"metric": "cpu", "values": ["usage", "temp"], "time": {"column": "at", "unit": "s"}, "delimiter": ";"}
    assert MappingOptions(values=["usage"], labels=["host"]).applied_to(file, Format.CSV) == {
        "metric": "cpu",
        "value": "usage",
        "time": {"column": "at", "unit": "s"},
        "delimiter": ";",
        "labels": {"host": "host"},
    }
    assert MappingOptions().applied_to(file, Format.OPENMETRICS) is file


@pytest.mark.parametrize(
    ("options", "format_", "fault"),
    [
        (MappingOptions("cpu", "name"), Format.CSV, "exclude each other"),
        (MappingOptions(constants=["env"]), Format.CSV, "env has no value"),
        (MappingOptions(timezone="Europe/Berlin"), Format.CSV, "--timezone needs --time"),
        (MappingOptions("cpu"), Format.JSONL, "jsonl does not use a mapping"),
    ],
)
def test_invalid_mapping_options_are_refused(options: MappingOptions, format_: Format, fault: str) -> None:
    with pytest.raises(MappingOptionUnusable, match=fault):
        options.applied_to({}, format_)

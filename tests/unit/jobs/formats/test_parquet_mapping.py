"""Mappings of Parquet columns in TOML."""

import tomllib

import pytest

from strandline.jobs.formats.parquet import EXPORT_MAPPING, ParquetMapping, UnusableMapping

pytestmark = pytest.mark.unit


def mapped(text: str) -> ParquetMapping:
    return ParquetMapping.from_table(tomllib.loads(text))


def test_a_mapping_names_columns_and_constants() -> None:
    mapping = mapped(
        """
        value = "v"
        time = { column = "t", unit = "us" }
        metric = "up"
        labels = { job = "Job Name" }
        labels_map = "tags"
        constants = { cluster = "eu" }
        """
    )
    assert mapping == ParquetMapping(
        value="v",
        time="t",
        time_unit="us",
        labels=(("job", "Job Name"),),
        labels_map="tags",
        constants=(("__name__", "up"), ("cluster", "eu")),
    )
    assert mapping.columns == ["v", "t", "Job Name", "tags"]


def test_the_mapping_of_an_export_can_be_written_down() -> None:
    text = 'value = "value"\ntime = "time"\nmetric = { column = "metric" }\nlabels_map = "labels"'
    assert mapped(text) == EXPORT_MAPPING


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('time = "t"\nmetric = "m"', '"value" of the mapping is missing'),
        ('value = 5\ntime = "t"\nmetric = "m"', '"value" of the mapping is 5, but must be the name of a column'),
        ('value = "v"\nmetric = "m"', '"time" of the mapping is missing'),
        ('value = "v"\ntime = { column = "t", unit = "h" }\nmetric = "m"', "is 'h'. Use one of: s, ms, us, ns"),
        ('value = "v"\ntime = { column = "t", zone = "x" }\nmetric = "m"', "unknown keys: zone"),
        ('value = "v"\ntime = { unit = "s" }\nmetric = "m"', '"column" of the mapping is missing'),
        ('value = "v"\ntime = "t"', "neither a metric nor labels"),
        ('value = "v"\ntime = "t"\nmetric = { constant = "m" }', '"metric" of the mapping is'),
        ('value = "v"\ntime = "t"\nmetric = "m"\nlabels = "job"', "\"labels\" of the mapping is 'job'"),
        ('value = "v"\ntime = "t"\nmetric = "m"\nconstants = { a = 1 }', '"constants" of the mapping is'),
        ('value = "v"\ntime = "t"\nmetric = "m"\nlabels = ["a"]\nconstants = { a = "1" }', "labels twice: a"),
        ('value = "v"\ntime = "t"\nmetric = "m"\nlabel = ["a"]', "unknown keys: label. Known are: metric, value,"),
    ],
)
def test_a_mapping_that_is_not_well_formed_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnusableMapping) as caught:
        mapped(text)
    assert message in str(caught.value)

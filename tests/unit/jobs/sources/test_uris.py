"""URIs with options, and the URIs of paths."""

import pytest

from strandline.jobs.sources.compressed import compression_of
from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.jobs.sources.uris import (
    decoded_pattern,
    full_uri,
    is_pattern,
    options_of,
    require_no_credentials,
    split_options,
)

pytestmark = pytest.mark.unit


def test_options_begin_at_a_question_mark_with_a_name() -> None:
    assert split_options("s3://b/202?-*.csv?region=eu&scheme=http") == ("s3://b/202?-*.csv", "?region=eu&scheme=http")
    assert split_options("s3://b/202?.csv") == ("s3://b/202?.csv", "")
    assert split_options("/data/a?region=eu") == ("/data/a?region=eu", "")
    assert options_of("s3://b/a?endpoint_override=http://host:9000&region=") == {
        "endpoint_override": "http://host:9000",
        "region": "",
    }


def test_options_are_not_wildcards() -> None:
    assert not is_pattern("s3://b/a.csv?region=eu")
    assert is_pattern("s3://b/a?.csv?region=eu")
    assert is_pattern("/data/a.csv?region=eu")
    assert compression_of("s3://b/a.csv.gz?region=eu") == "gzip"


@pytest.mark.parametrize(
    ("uri", "path", "expected"),
    [
        ("s3://b/*.csv?region=eu", "b/a #1%?é+.csv", "s3://b/a%20%231%25%3F%C3%A9+.csv?region=eu"),
        ("file:///data/*", "/data/a b.csv", "file:///data/a%20b.csv"),
        ("hdfs://name:8020/data/*", "/data/a.csv", "hdfs://name:8020/data/a.csv"),
        ("hdfs:///data/*", "/data/a.csv", "hdfs:///data/a.csv"),
        ("data/*", "/data/a #b.csv", "/data/a #b.csv"),
    ],
)
def test_the_uri_of_a_path_is_encoded_and_keeps_host_and_options(uri: str, path: str, expected: str) -> None:
    assert full_uri(uri, path) == expected


@pytest.mark.parametrize("name", ["access_key", "secret_key", "session_token", "X-Amz-Signature", "password"])
def test_an_option_with_a_secret_is_refused_without_repeating_it(name: str) -> None:
    with pytest.raises(SourceUnusable, match=f"holds the option {name}") as refused:
        require_no_credentials(f"s3://bucket/a*.csv?region=eu&{name}=hunter2")
    assert "hunter2" not in str(refused.value)


def test_encoded_wildcards_are_literal() -> None:
    assert decoded_pattern("a%20b*%2a%3F%5B1].csv") == "a b*[*][?][[]1].csv"

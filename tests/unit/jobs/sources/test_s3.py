"""The addresses of S3 servers, and their clients."""

import os

import pytest

from strandline.jobs.sources import s3
from strandline.jobs.sources.s3 import S3Address, s3_location
from strandline.jobs.sources.source_errors import SourceUnusable

pytestmark = pytest.mark.unit


def test_a_region_is_looked_up_only_if_neither_region_nor_endpoint_is_known() -> None:
    assert s3_location("s3://b/a%20b#1.csv", {}) == (S3Address(bucket="b"), "b/a b#1.csv")
    assert s3_location("s3://b/a?region=eu", {}) == (S3Address(region="eu"), "b/a")
    # A bucket on Amazon's servers may be elsewhere than the machine.
    assert s3_location("s3://b/a", {"AWS_REGION": "eu"}) == (S3Address(bucket="b"), "b/a")
    environ = {"AWS_ENDPOINT_URL_S3": "http://host:9000", "AWS_ENDPOINT_URL": "http://other"}
    assert s3_location("s3://b/a", environ)[0] == S3Address(region="us-east-1", endpoint="http://host:9000")
    environ = {"AWS_ENDPOINT_URL": "http://other", "AWS_DEFAULT_REGION": "eu"}
    assert s3_location("s3://b/a", environ)[0] == S3Address(region="eu", endpoint="http://other")


def test_options_of_a_uri_take_precedence_over_the_environment() -> None:
    uri = (
        "s3://b/a?endpoint_override=host:1&scheme=http&region=eu&force_virtual_addressing=true&tls_ca_file_path=/ca.pem"
    )
    environ = {"AWS_ENDPOINT_URL_S3": "http://other", "AWS_REGION": "us-west-1"}
    assert s3_location(uri, environ)[0] == S3Address("", "eu", "host:1", "http", is_virtual=True, ca_file="/ca.pem")


@pytest.mark.parametrize("uri", ["s3://", "s3:///a", "s3://buck*/a", "s3://?region=eu"])
def test_a_uri_without_one_bucket_is_refused(uri: str) -> None:
    with pytest.raises(SourceUnusable, match="has no bucket"):
        s3_location(uri, {})


def test_an_unknown_option_is_refused_without_its_value() -> None:
    with pytest.raises(SourceUnusable, match="s3://b/a has the unknown option regoin") as refused:
        s3_location("s3://b/a?regoin=eu-west-1", {})
    assert "eu-west-1" not in str(refused.value)


def test_a_client_is_kept_within_its_process() -> None:
    address = S3Address(region="eu", endpoint="127.0.0.1:1")
    assert s3._client(address, os.getpid()) is s3._client(address, os.getpid())
    assert s3._client(address, os.getpid() + 1) is not s3._client(address, os.getpid())

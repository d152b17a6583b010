"""Clients of S3, and of servers that are compatible with it.

The clients that pyarrow makes for URIs repeat a request for up to 100 seconds against an endpoint that does not answer,
and take no other limits. Those made here have limits, but read no endpoint from the environment by themselves.

Credentials come from the environment alone, as the AWS SDK finds them. They are never passed on, so that no URI, row or
log can contain them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

import pyarrow.fs as pafs

from strandline.jobs.sources.source_errors import SourceUnusable
from strandline.jobs.sources.uris import WILDCARDS, options_of, split_options

SCHEME: Final = "s3://"
ATTEMPTS: Final = 3
CONNECT_TIMEOUT_S: Final = 5.0
SILENCE_TIMEOUT_S: Final = 15.0
"""A request without a byte of progress for this long has failed."""

_OPTIONS = ("region", "endpoint_override", "scheme", "force_virtual_addressing", "tls_ca_file_path")
_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True, slots=True)
class S3Address:
    """What a client depends on, besides credentials. The bucket is only set if its region must be looked up."""

    bucket: str = ""
    region: str = ""
    endpoint: str = ""
    scheme: str = "https"
    is_virtual: bool = False
    ca_file: str = ""


def s3_location(uri: str, environ: Mapping[str, str]) -> tuple[S3Address, str]:
    """The address of the server of a URI, and the bucket with the key. Options of the URI take precedence over the
    environment. Raises `SourceUnusable`.
    """
    base, _ = split_options(uri)
    path = unquote(base.removeprefix(SCHEME)).rstrip("/")
    bucket = path.partition("/")[0]
    if not bucket or any(character in bucket for character in WILDCARDS):
        raise SourceUnusable(f"{uri} has no bucket", remedy="Name one bucket, as in s3://bucket/path")
    options = options_of(uri)
    if unknown := sorted(set(options) - set(_OPTIONS)):
        raise SourceUnusable(
            f"{base} has the unknown option {unknown[0]}",
            remedy=f"Use {', '.join(_OPTIONS)}; write a question mark in a key as %3F",
        )
    endpoint = options.get("endpoint_override") or _first_of(_ENDPOINT_VARIABLES, environ)
    region = options.get("region", "")
    if endpoint and not region:
        region = _first_of(_REGION_VARIABLES, environ) or "us-east-1"
    address = S3Address(
        "" if region else bucket,
        region,
        endpoint,
        options.get("scheme", "https"),
        options.get("force_virtual_addressing", "").lower() in ("1", "true"),
        options.get("tls_ca_file_path", ""),
    )
    return address, path


def s3_file_system(uri: str) -> tuple[pafs.S3FileSystem, str]:
    """The file system of a URI, and the path in it. Raises `SourceUnusable`, and `OSError` if the region of the bucket
    can't be looked up.
    """
    address, path = s3_location(uri, os.environ)
    return _client(address, os.getpid()), path


@lru_cache(maxsize=32)
def _client(address: S3Address, process: int) -> pafs.S3FileSystem:
    """Kept, because a client keeps its connections. `process` is in the key: a fork must not share them."""
    del process
    return pafs.S3FileSystem(
        region=address.region or pafs.resolve_s3_region(address.bucket),
        endpoint_override=address.endpoint or None,
        scheme=address.scheme,
        force_virtual_addressing=address.is_virtual,
        tls_ca_file_path=address.ca_file or None,
        connect_timeout=CONNECT_TIMEOUT_S,
        request_timeout=SILENCE_TIMEOUT_S,
        retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )


def _first_of(names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")

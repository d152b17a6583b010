"""What can go wrong with a source, and what errors of a file system mean.

pyarrow raises most errors of S3 as `OSError` with a text, for example for a missing bucket, which no repetition can
fix. `storage_failure` turns the text into a cause, a remedy and whether a repetition may help.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from strandline.errors import Fatal, Retryable


class SourceUnusable(Fatal):
    """The source can't be read until an operator changes something."""


class SourceUnreachable(Retryable):
    """The file system did not answer."""


class SourceChanged(Fatal):
    """A file has changed since the job was planned."""


@dataclass(frozen=True, slots=True)
class StorageFailure:
    """The cause of a failed call to a file system, its remedy, and whether a repetition may help."""

    cause: str
    remedy: str
    is_transient: bool = False


_CALL_FAILED = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during \w+ operation: (.*)", re.DOTALL)
_UNKNOWN_CODE = re.compile(r"Unable to parse ExceptionName: (\w+)")
_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|NoSuchBucket|Bucket '[^']*' not found")

_BAD_CREDENTIALS = StorageFailure(
    "the object store does not accept the credentials",
    "Check the credentials in the environment of this process: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the "
    "file AWS_SHARED_CREDENTIALS_FILE",
)
_DENIED = StorageFailure(
    "the object store denies access",
    "Check the credentials in the environment of this process, and that they permit what docs/pipeline.md lists under "
    "Object stores",
)
_WRONG_CLOCK = StorageFailure(
    "the object store rejects the time of the request", "Set the clock of this machine, for example with NTP"
)
_WRONG_REGION = StorageFailure(
    "the bucket is in another region", "Add the region to the URI, as in s3://bucket/path?region=eu-central-1"
)
_MISSING_BUCKET = StorageFailure(
    "the bucket does not exist", "Check the URI and the endpoint (AWS_ENDPOINT_URL_S3); buckets are not created"
)
_FAILURES = {
    "INVALID_ACCESS_KEY_ID": _BAD_CREDENTIALS,
    "INVALID_CLIENT_TOKEN_ID": _BAD_CREDENTIALS,
    "MISSING_AUTHENTICATION_TOKEN": _BAD_CREDENTIALS,
    "SIGNATURE_DOES_NOT_MATCH": _BAD_CREDENTIALS,
    "UNRECOGNIZED_CLIENT": _BAD_CREDENTIALS,
    "ExpiredToken": _BAD_CREDENTIALS,
    "InvalidToken": _BAD_CREDENTIALS,
    "ACCESS_DENIED": _DENIED,
    "REQUEST_EXPIRED": _WRONG_CLOCK,
    "REQUEST_TIME_TOO_SKEWED": _WRONG_CLOCK,
    "AuthorizationHeaderMalformed": _WRONG_REGION,
    "IllegalLocationConstraintException": _WRONG_REGION,
    "PermanentRedirect": _WRONG_REGION,
}
_FAILURES_BY_STATUS = {"301": _WRONG_REGION, "401": _BAD_CREDENTIALS, "403": _DENIED}


def storage_failure(error: Exception) -> StorageFailure:
    """The meaning of an error that pyarrow has raised for a file system."""
    text = str(error)
    if isinstance(error, pa.ArrowInvalid):
        return StorageFailure(text, "Check the URI")
    if _NO_BUCKET.search(text):
        return _MISSING_BUCKET
    failed = _CALL_FAILED.search(text)
    if failed is None:
        return StorageFailure(text, "Check the file system", is_transient=True)
    code, status, detail = failed.groups()
    if named := _UNKNOWN_CODE.search(detail):
        code = named[1]
    known = _FAILURES.get(code) or _FAILURES_BY_STATUS.get(status)
    if known is not None:
        return known
    return StorageFailure(
        f"{code}: {detail.strip()}",
        "Check that the object store runs, and its address (AWS_ENDPOINT_URL_S3, or endpoint_override in the URI)",
        is_transient=True,
    )


@contextmanager
def source_errors(uri: str, action: str = "read") -> Iterator[None]:
    """Raise errors of a file system as `SourceUnusable` or `SourceUnreachable`, with the URI and a remedy."""
    try:
        yield
    except PermissionError as error:
        raise SourceUnusable(
            f"no permission to read {uri}: {error}", remedy="Permit the user that runs the job to read it"
        ) from error
    except FileNotFoundError as error:
        raise SourceUnusable(f"there is no file {uri}", remedy="Check the path") from error
    except (OSError, pa.ArrowInvalid) as error:
        failure = storage_failure(error)
        kind = SourceUnreachable if failure.is_transient else SourceUnusable
        raise kind(f"{uri} can't be {action}: {failure.cause}", remedy=failure.remedy) from error

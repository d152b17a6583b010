"""What errors of file systems mean."""

import pyarrow as pa
import pytest

from strandline.jobs.sources.source_errors import (
    SourceUnreachable,
    SourceUnusable,
    source_errors,
    storage_failure,
)

pytestmark = pytest.mark.unit


def failed(code: str, detail: str = "No response body.", status: str = "") -> OSError:
    """An error as pyarrow raises it."""
    return OSError(
        f"When reading key 'k' in bucket 'b': AWS Error {code}{status} during HeadObject operation: {detail}"
    )


@pytest.mark.parametrize(
    ("error", "cause", "remedy"),
    [
        (failed("NO_SUCH_BUCKET"), "the bucket does not exist", "Check the URI"),
        (OSError("Bucket 'b' not found. To create buckets, ..."), "the bucket does not exist", "Check the URI"),
        (failed("SIGNATURE_DOES_NOT_MATCH"), "does not accept the credentials", "AWS_SECRET_ACCESS_KEY"),
        (failed("INVALID_ACCESS_KEY_ID"), "does not accept the credentials", "AWS_ACCESS_KEY_ID"),
        (
            failed("UNKNOWN", "Unable to parse ExceptionName: ExpiredToken Message: expired", " (HTTP status 400)"),
            "does not accept the credentials",
            "AWS_SHARED_CREDENTIALS_FILE",
        ),
        (failed("ACCESS_DENIED"), "denies access", "docs/pipeline.md"),
        (failed("UNKNOWN", status=" (HTTP status 403)"), "denies access", "docs/pipeline.md"),
        (failed("UNKNOWN", status=" (HTTP status 301)"), "in another region", "?region="),
        (failed("REQUEST_TIME_TOO_SKEWED"), "the time of the request", "clock"),
        (pa.ArrowInvalid("Empty path component in path b//k"), "Empty path component", "Check the URI"),
    ],
)
def test_what_no_repetition_fixes_is_final(error: Exception, cause: str, remedy: str) -> None:
    found = storage_failure(error)
    assert cause in found.cause
    assert remedy in found.remedy
    assert not found.is_transient
    with pytest.raises(SourceUnusable, match="s3://b/k can't be read: ") as raised, source_errors("s3://b/k"):
        raise error
    assert raised.value.remedy == found.remedy


@pytest.mark.parametrize(
    "error",
    [
        failed("NETWORK_CONNECTION", "curlCode: 7, Could not connect to server"),
        failed("SLOW_DOWN", "Please reduce your request rate."),
        failed("UNKNOWN", status=" (HTTP status 500)"),
        OSError("the disk is away"),
    ],
)
def test_anything_else_is_retried(error: Exception) -> None:
    assert storage_failure(error).is_transient
    with pytest.raises(SourceUnreachable, match="s3://b/k can't be listed: "), source_errors("s3://b/k", "listed"):
        raise error


def test_errors_of_a_local_disk_keep_their_meaning() -> None:
    with pytest.raises(SourceUnusable, match="no permission to read /a"), source_errors("/a"):
        raise PermissionError(13, "Permission denied")
    with pytest.raises(SourceUnusable, match="there is no file /a"), source_errors("/a"):
        raise FileNotFoundError(2, "No such file")

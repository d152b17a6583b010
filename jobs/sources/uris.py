"""URIs of files and folders. Pure.

A URI may end with options for its file system, as in `s3://bucket/2026/*.csv?region=eu-central-1`. A `?` that no
`name=` follows is a wildcard, as in paths.
"""

import re
from urllib.parse import parse_qsl, quote, unquote

from strandline.jobs.sources.source_errors import SourceUnusable

WILDCARDS = "*?["
_OPTIONS = re.compile(r"\?(?=[A-Za-z0-9_.-]+=)")
_ENCODED_WILDCARD = re.compile("%2A|%3F|%5B", re.IGNORECASE)
_SECRET_OPTIONS = re.compile(r"key|secret|token|password|credential|signature", re.IGNORECASE)
# All that a URI may have in its path, without the wildcards: the URI of a file must not be taken for a pattern.
_PLAIN_CHARACTERS = "/@:=+,;!$&'()~"


def require_no_credentials(uri: str) -> None:
    """Reject a URI with a user, a password or another secret, because URIs are stored in rows of jobs, logs and
    reports. Raises `SourceUnusable`, without the URI.
    """
    scheme, separator, rest = uri.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    port = authority.rpartition("]")[2].partition(":")[2]
    # A secret with a slash that is not percent-encoded is in the position of the port.
    if separator and ("@" in authority or (port and not port.isdecimal())):
        raise _holds(scheme, "a user or a password")
    secret = next((name for name in options_of(uri) if _SECRET_OPTIONS.search(name)), None)
    if secret is not None:
        raise _holds(scheme, f"the option {secret}")


def split_options(uri: str) -> tuple[str, str]:
    """A URI without its options, and these, starting with `?`; empty without options. Paths have none."""
    if "://" not in uri:
        return uri, ""
    found = _OPTIONS.search(uri)
    return (uri, "") if found is None else (uri[: found.start()], uri[found.start() :])


def options_of(uri: str) -> dict[str, str]:
    """The options of a URI by name."""
    return dict(parse_qsl(split_options(uri)[1][1:], keep_blank_values=True))


def is_pattern(uri: str) -> bool:
    """Whether a URI or path has wildcards."""
    return any(character in split_options(uri)[0] for character in WILDCARDS)


def decoded_pattern(pattern: str) -> str:
    """A pattern in a URI as it is compared with paths, which are not percent-encoded. Encoded wildcards are literal."""
    return unquote(_ENCODED_WILDCARD.sub(lambda found: f"[{unquote(found[0])}]", pattern))


def full_uri(uri: str, path: str) -> str:
    """The URI of a path, as pyarrow returns it, on the file system of another URI."""
    if "://" not in uri:
        return path
    base, options = split_options(uri)
    scheme, _, rest = base.partition("://")
    # The paths of object stores begin with the bucket, all others with a slash.
    host = rest.partition("/")[0] if path.startswith("/") else ""
    return f"{scheme}://{host}{quote(path, safe=_PLAIN_CHARACTERS)}{options}"


def _holds(scheme: str, what: str) -> SourceUnusable:
    return SourceUnusable(
        f"a URI with {scheme}:// holds {what}",
        remedy="Remove it from the URI, and set the credentials in the environment of the workers, for example as "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    )

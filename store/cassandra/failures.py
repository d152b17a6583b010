"""What the driver's errors mean to a store: whether the servers refused, or whether nobody can say what came of it."""

from typing import Final

from cassandra import AuthenticationFailed, DriverException, RequestValidationException, Unauthorized
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionException
from cassandra.pool import NoConnectionsAvailable
from cassandra.protocol import ErrorMessage, NotSupportedError
from cassandra.protocol import RequestValidationException as RawRequestValidationException

from strandline.errors import Retryable
from strandline.store.protocol import StoreRefused

DRIVER_ERRORS: Final = (
    DriverException,
    ErrorMessage,
    NoHostAvailable,
    ConnectionException,
    ConnectionBusy,
    NoConnectionsAvailable,
    NotSupportedError,
)
"""All that the driver raises for what servers or the network did. They have no ancestor in common."""

# The servers looked at the request and will never do it. The driver passes some answers on in its own words, others as
# they came in.
_REFUSALS: Final = (
    RequestValidationException,
    RawRequestValidationException,
    AuthenticationFailed,
    NotSupportedError,
)


class Unanswered(Retryable):
    """A request has no answer that says what came of it: it may have been done, or be done yet."""


def store_error(error: Exception, what: str, hosts: str) -> StoreRefused | Unanswered:
    """The error of a store for one of the driver's, met while doing `what`."""
    at = f"Cassandra at {hosts}"
    if not isinstance(error, _REFUSALS):
        return Unanswered(
            f"{at} did not answer to {what}: {error_text(error)}", remedy="Check its servers' state and logs"
        )
    if isinstance(error, Unauthorized):
        remedy = "Grant the user of cassandra.credentials_file SELECT and MODIFY on the keyspace"
    elif "maximum supported expiration date" in str(error):
        remedy = "Make retention shorter, or set storage_compatibility_mode to NONE in cassandra.yaml"
    elif "ttl is too large" in str(error):
        remedy = "Make retention shorter: nothing lives longer than 20 years in Cassandra"
    else:
        remedy = "Check that the tables are those of conf/schema.cql"
    return StoreRefused(f"{at} refuses to {what}: {error_text(error)}", remedy=remedy)


def error_text(error: Exception) -> str:
    """What an error says, with the servers that it speaks of."""
    if isinstance(error, NoHostAvailable) and isinstance(error.errors, dict) and error.errors:
        return "; ".join(f"{server}: {_line(reason)}" for server, reason in error.errors.items())
    return _line(error)


def _line(error: object) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if isinstance(error, Exception) else text

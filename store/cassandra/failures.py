"""Translates the driver's errors: the servers rejected the request, or its result is unknown."""

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
"""Everything that the driver raises because of servers or the network. These classes have no common base class."""

# The servers rejected the request permanently. The driver raises some answers as its own classes, others as received.
_REFUSALS: Final = (
    RequestValidationException,
    RawRequestValidationException,
    AuthenticationFailed,
    NotSupportedError,
)


class Unanswered(Retryable):
    """A request without a conclusive answer: it may have been applied, or may still be."""


def store_error(error: Exception, what: str, hosts: str) -> StoreRefused | Unanswered:
    """Return the store's error for one of the driver's. `what` is what was being done."""
    at = f"Cassandra at {hosts}"
    if not isinstance(error, _REFUSALS):
        return Unanswered(
            f"{at} did not answer a request to {what}: {error_text(error)}", remedy="Check its servers' state and logs"
        )
    if isinstance(error, Unauthorized):
        remedy = "Grant the user of cassandra.credentials_file SELECT and MODIFY on the keyspace"
    elif "maximum supported expiration date" in str(error):
        remedy = "Make retention shorter, or set storage_compatibility_mode to NONE in cassandra.yaml"
    elif "ttl is too large" in str(error):
        remedy = "Make retention shorter: Cassandra limits TTLs to 20 years"
    else:
        remedy = "Check that the tables are those of conf/schema.cql"
    return StoreRefused(f"{at} rejected a request to {what}: {error_text(error)}", remedy=remedy)


def error_text(error: Exception) -> str:
    """Return an error's text, with the servers that it names."""
    if isinstance(error, NoHostAvailable) and isinstance(error.errors, dict) and error.errors:
        return "; ".join(f"{server}: {_line(reason)}" for server, reason in error.errors.items())
    return _line(error)


def _line(error: object) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if isinstance(error, Exception) else text

"""The driver's errors are classified as permanent or not, with a remedy."""

import pytest
from cassandra import (
    AuthenticationFailed,
    InvalidRequest,
    OperationTimedOut,
    ReadFailure,
    ReadTimeout,
    Unauthorized,
    Unavailable,
    WriteTimeout,
    WriteType,
)
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionBusy, ConnectionShutdown
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage, ServerError, SyntaxException

from strandline.store.cassandra.failures import DRIVER_ERRORS, Unanswered, store_error
from strandline.store.protocol import StoreRefused

pytestmark = pytest.mark.unit

HOSTS = "10.0.0.1:9042, 10.0.0.2:9042"


@pytest.mark.parametrize(
    "error",
    [
        WriteTimeout("late", write_type=WriteType.CAS),
        ReadTimeout("late"),
        ReadFailure("failed"),
        Unavailable("not enough"),
        OperationTimedOut(),
        ConnectionShutdown("closed"),
        ConnectionBusy("full"),
        ServerError(0, "broken", None),
        OverloadedErrorMessage(0x1001, "too much", None),
        ErrorMessage(0x1700, "CAS result unknown", None),
        NoHostAvailable("all tried", {"10.0.0.1": ConnectionShutdown("closed")}),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unknown_result_is_unanswered(error: Exception) -> None:
    assert isinstance(error, DRIVER_ERRORS)
    raised = store_error(error, "read the jobs of shard a/0", HOSTS)
    assert type(raised) is Unanswered
    assert f"Cassandra at {HOSTS} did not answer a request to read the jobs of shard a/0" in str(raised)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (InvalidRequest("unconfigured table"), "conf/schema.cql"),
        (InvalidRequest("... exceeds maximum supported expiration date of 2038"), "storage_compatibility_mode"),
        (InvalidRequest("ttl is too large. requested (1)"), "20 years"),
        (SyntaxException(0x2000, "no viable alternative", None), "conf/schema.cql"),
        (Unauthorized("User me has no MODIFY permission"), "Grant the user"),
        (AuthenticationFailed("bad credentials"), "conf/schema.cql"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_permanent_rejection_is_refused_with_a_remedy(error: Exception, remedy: str) -> None:
    assert isinstance(error, DRIVER_ERRORS)
    raised = store_error(error, "read the jobs of shard a/0", HOSTS)
    assert type(raised) is StoreRefused
    assert f"Cassandra at {HOSTS} rejected a request to read the jobs of shard a/0" in raised.message
    assert remedy in raised.remedy


def test_each_servers_own_error_is_reported() -> None:
    error = NoHostAvailable("all tried", {"10.0.0.1": ConnectionShutdown("closed"), "10.0.0.2": OperationTimedOut()})
    raised = str(store_error(error, "x", HOSTS))
    assert "10.0.0.1: ConnectionShutdown: closed" in raised
    assert "10.0.0.2: OperationTimedOut" in raised

"""The health check of Cassandra: a CQL query.

Import this module only to run a check: loading the driver takes nearly half a second.
"""

import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from cassandra import DriverException
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import WhiteListRoundRobinPolicy

from strandline.node.stack.errors import Unhealthy
from strandline.node.stack.options import CassandraClient


def check_cassandra(host: str, port: int, client: CassandraClient, timeout: float) -> None:
    """Query whether the node has joined its ring. Raises `Unhealthy` if it has not, or if a round trip takes more than
    `timeout` seconds. The driver's log lines are suppressed.
    """
    cluster = Cluster(
        [host],
        port=port,
        protocol_version=5,
        auth_provider=PlainTextAuthProvider(*client.login) if client.login else None,
        ssl_context=_tls(client),
        connect_timeout=timeout,
        control_connection_timeout=timeout,
        idle_heartbeat_interval=0,
        executor_threads=1,
        schema_metadata_enabled=False,
        token_metadata_enabled=False,
        execution_profiles={
            EXEC_PROFILE_DEFAULT: ExecutionProfile(WhiteListRoundRobinPolicy([host]), request_timeout=timeout)
        },
    )
    with _quiet_driver():
        try:
            row = cluster.connect().execute("SELECT bootstrapped FROM system.local").one()
        except NoHostAvailable as failure:
            reasons = "; ".join(str(reason) for reason in failure.errors.values())
            raise Unhealthy(f"Cassandra at {host}:{port}: {reasons or failure}") from failure
        except (DriverException, ConnectionException, OSError) as failure:
            raise Unhealthy(f"Cassandra at {host}:{port}: {failure}") from failure
        finally:
            cluster.shutdown()
    if row is None or row.bootstrapped != "COMPLETED":
        raise Unhealthy(f"Cassandra at {host}:{port} has not joined its ring: {row}")


def _tls(client: CassandraClient) -> ssl.SSLContext | None:
    if client.ca is None:
        return None
    context = ssl.create_default_context(cafile=client.ca)
    # The driver passes no host name. On loopback, checking the CA is enough.
    context.check_hostname = False
    if client.certificate is not None:
        context.load_cert_chain(client.certificate, client.key)
    return context


@contextmanager
def _quiet_driver() -> Iterator[None]:
    """Suppress the driver's log: while a server starts, failed connections are expected."""
    logger = logging.getLogger("cassandra")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)

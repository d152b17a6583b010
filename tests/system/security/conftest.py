"""Servers that take nobody in without TLS, a user and a password; only for this folder, for they cost as much again."""

from collections.abc import Iterator

import pytest

from strandline.node.stack import Stack
from support.certificates import Certificates, make_certificates
from support.real_stack import running
from support.secured_stack import secured_options


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """What the servers of `secured_stack` show, and the authority that signed it."""
    return make_certificates(tmp_path_factory.mktemp("certificates") / "made")


@pytest.fixture(scope="module")
def secured_stack(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Stack]:
    """Kafka and Cassandra, healthy, and careful whom they talk to."""
    yield from running(secured_options(tmp_path_factory.mktemp("secured-stack") / "state", certificates))

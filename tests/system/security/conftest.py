"""Servers that require TLS, a user and a password. Only for this folder, because they cost as much as the
shared ones.
"""

from collections.abc import Iterator

import pytest

from strandline.node.stack import Stack
from support.certificates import Certificates, make_certificates
from support.real_stack import running
from support.secured_stack import secured_options


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """The certificates of the servers of `secured_stack`, and their authority."""
    return make_certificates(tmp_path_factory.mktemp("certificates") / "made")


@pytest.fixture(scope="module")
def secured_stack(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Stack]:
    """A healthy Kafka and Cassandra with authentication and TLS."""
    yield from running(secured_options(tmp_path_factory.mktemp("secured-stack") / "state", certificates))

"""TLS for the servers of these tests."""

import ssl

import pytest

from strandline.node.settings.http_sections import HttpSettings
from support.certificates import Certificates, make_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls") / "ca")


@pytest.fixture(scope="session")
def encrypted(certificates: Certificates) -> HttpSettings:
    folder = certificates.ca.parent
    return HttpSettings(tls_certificate_file=folder / "server.pem", tls_key_file=folder / "server.key")


@pytest.fixture(scope="session")
def trusting(certificates: Certificates) -> ssl.SSLContext:
    """The TLS context of a client that trusts these servers."""
    return ssl.create_default_context(cafile=str(certificates.ca))

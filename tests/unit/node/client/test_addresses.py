"""Addresses of nodes."""

import pytest

from strandline.errors import ExitCode
from strandline.node.client.addresses import BadAddress, NodeAddress, address_of, parse_url
from strandline.node.settings.http_sections import HttpSettings

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("written", "address", "url"),
    [
        ("http://127.0.0.1:9460", NodeAddress("127.0.0.1", 9460), "http://127.0.0.1:9460"),
        ("http://node-1/", NodeAddress("node-1", 80), "http://node-1:80"),
        ("https://node-1", NodeAddress("node-1", 443, tls=True), "https://node-1:443"),
        ("HTTP://[::1]:9460", NodeAddress("::1", 9460), "http://[::1]:9460"),
        ("http://proxy/a/b/", NodeAddress("proxy", 80, prefix="/a/b"), "http://proxy:80/a/b"),
    ],
)
def test_a_url_names_an_address(written: str, address: NodeAddress, url: str) -> None:
    assert parse_url(written) == address
    assert address.url == url


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("127.0.0.1:9460", "does not begin with http:// or https://"),
        ("ftp://a", "does not begin with http:// or https://"),
        ("http://", "has no host"),
        ("http://a:99999", "is invalid"),
        ("http://[::1", "is invalid"),
        ("http://a/?x=1", "has more than"),
        ("http://a/ü", "has characters that are not allowed in URLs"),
    ],
)
def test_an_invalid_url_is_refused(written: str, fault: str) -> None:
    with pytest.raises(BadAddress, match=fault) as refused:
        parse_url(written)
    assert refused.value.exit_code == ExitCode.USAGE
    assert "http://127.0.0.1:9460" in refused.value.remedy


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadAddress, match="contains a user or a password") as refused:
        parse_url("http://me:hunter2@node-1:9460")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("listening", "host"),
    [
        ("127.0.0.1:9460", "127.0.0.1"),
        ("localhost:9460", "localhost"),
        ("[::1]:9460", "::1"),
        ("10.0.0.5:9460", "10.0.0.5"),
    ],
)
def test_the_default_address_is_that_of_the_settings(listening: str, host: str) -> None:
    settings = HttpSettings.model_construct(node_address=listening, tls_certificate_file=None)
    assert address_of(settings) == NodeAddress(host, 9460)


def test_a_node_that_listens_on_all_addresses_is_queried_on_loopback() -> None:
    for listening, host in (("0.0.0.0:9460", "127.0.0.1"), ("[::]:9460", "::1")):
        settings = HttpSettings.model_construct(node_address=listening, tls_certificate_file=None)
        assert address_of(settings).host == host


def test_a_port_that_is_chosen_at_the_start_must_be_given() -> None:
    settings = HttpSettings.model_construct(node_address="127.0.0.1:0", tls_certificate_file=None)
    with pytest.raises(BadAddress, match="any free port") as refused:
        address_of(settings)
    assert "--url" in refused.value.remedy

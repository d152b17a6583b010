"""Addresses to listen on, and TLS."""

import asyncio
import errno
import resource
import socket
import ssl
import warnings
from pathlib import Path

import aiohttp
import pytest

from strandline.errors import Fatal
from strandline.node.http import handshakes, listening
from strandline.node.http.listening import CannotListen, address_of, allow_files, bound_socket, tls_context
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.settings.http_sections import HttpSettings
from support.certificates import Certificates, make_certificates, openssl
from support.http_servers import in_loop, secret_file, served

pytestmark = pytest.mark.unit


async def hello(_request: Request) -> Response:
    return Response.text("hello")


ROUTES = (Route(("GET",), "/", hello, Access.READ),)


@pytest.mark.parametrize(
    ("address", "host", "url"),
    [
        ("127.0.0.1:0", "127.0.0.1", "http://127.0.0.1:{}"),
        ("localhost:0", "127.0.0.1", "http://127.0.0.1:{}"),
        ("0.0.0.0:0", "0.0.0.0", "http://127.0.0.1:{}"),  # noqa: S104 - for the time of the test
        ("[::1]:0", "::1", "http://[::1]:{}"),
        ("[::]:0", "::", "http://[::1]:{}"),
    ],
)
def test_a_free_port_is_chosen_and_reported_with_a_local_url(address: str, host: str, url: str) -> None:
    with bound_socket(address) as listener:
        bound = address_of(listener, tls=False)
        assert (bound.host, bound.url) == (host, url.format(bound.port))
        assert bound.port == listener.getsockname()[1] > 0


def test_the_ipv6_wildcard_address_includes_ipv4() -> None:
    with bound_socket("[::]:0") as listener:
        socket.create_connection(("127.0.0.1", listener.getsockname()[1]), timeout=5).close()


def test_a_port_in_use_is_refused_with_a_command_that_finds_its_process() -> None:
    with bound_socket("127.0.0.1:0") as listener:
        port = listener.getsockname()[1]
        with pytest.raises(CannotListen) as refused:
            bound_socket(f"127.0.0.1:{port}")
    assert isinstance(refused.value, Fatal)
    assert f"can't listen on 127.0.0.1:{port}: another process listens there" in str(refused.value)
    assert f"ss -ltnp 'sport = :{port}'" in refused.value.remedy


def test_an_address_of_another_machine_is_reported() -> None:
    # 192.0.2.0/24 is reserved for documentation: no machine has it.
    with pytest.raises(CannotListen, match="does not have that address"):
        bound_socket("192.0.2.1:0")


@pytest.mark.parametrize(
    ("number", "fault"),
    [
        (errno.EACCES, "from 1024 on, or grant the process CAP_NET_BIND_SERVICE"),
        (errno.EAFNOSUPPORT, "has no IPv6"),
        (errno.ENOBUFS, "No buffer space available"),
    ],
)
def test_other_errors_are_reported_with_a_remedy(number: int, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(socket.socket):
        def bind(self, _address: object) -> None:
            raise OSError(number, "refused")

    monkeypatch.setattr(listening.socket, "socket", Refusing)
    with pytest.raises(CannotListen, match=fault):
        bound_socket("127.0.0.1:80")


def test_a_restart_gets_its_port_back_at_once() -> None:
    async def test() -> None:
        async with served(ROUTES) as serving:
            await serving.get("/")
            address = f"127.0.0.1:{serving.bound.port}"
            # The server closes first, so that its side of the connection stays in TIME_WAIT.
            await serving.server.stop(1)
        async with served(ROUTES, address=address) as restarted:
            assert (await restarted.get("/")).status == 200

    in_loop(test())


def client_context(certificates: Certificates) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates.ca))


def test_tls_uses_the_certificate_of_the_settings(encrypted: HttpSettings, trusting: ssl.SSLContext) -> None:
    async def test() -> tuple[str, bytes]:
        async with served(ROUTES, encrypted) as serving:
            reply = await serving.get("/", ssl=trusting)
            return serving.bound.url, reply.body

    url, body = in_loop(test())
    assert url.startswith("https://127.0.0.1:")
    assert body == b"hello"


@pytest.mark.parametrize("iterations", [None, *range(12)])
def test_a_server_with_tls_stops_whether_or_not_a_client_has_just_gone(
    encrypted: HttpSettings, trusting: ssl.SSLContext, iterations: int | None
) -> None:
    """The server learns of the close in several steps, one per loop iteration."""

    async def test() -> bytes:
        async with served(ROUTES, encrypted) as serving:
            host, port = serving.bound.host, serving.bound.port
            reader, writer = await asyncio.open_connection(host, port, ssl=trusting)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200 ")
            if iterations is not None:
                writer.close()
            for _ in range(iterations or 0):
                await asyncio.sleep(0)
            await serving.server.stop(1.0)
            return await reader.read()

    assert in_loop(test()) == b""


def test_plain_http_gets_no_answer(encrypted: HttpSettings) -> None:
    async def test() -> bytes:
        async with served(ROUTES, encrypted) as serving:
            return await serving.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")

    assert b"hello" not in in_loop(test())


@pytest.mark.parametrize(
    ("version", "ciphers", "accepted"),
    [
        (ssl.TLSVersion.TLSv1_3, None, True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-GCM-SHA256", True),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-CHACHA20-POLY1305", True),
        (ssl.TLSVersion.TLSv1_2, "AES128-GCM-SHA256", False),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-RSA-AES128-SHA", False),
        (ssl.TLSVersion.TLSv1_1, "ALL:@SECLEVEL=0", False),
    ],
)
def test_only_modern_tls_versions_are_accepted(
    certificates: Certificates, encrypted: HttpSettings, version: ssl.TLSVersion, ciphers: str | None, *, accepted: bool
) -> None:
    context = client_context(certificates)
    with warnings.catch_warnings():
        # Older versions are deprecated, and the test tries them on purpose.
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    if ciphers is not None:
        context.set_ciphers(ciphers)

    async def test() -> bool:
        async with served(ROUTES, encrypted) as serving:
            try:
                return (await serving.get("/", ssl=context)).status == 200
            except aiohttp.ClientConnectorError:
                return False

    assert in_loop(test()) is accepted
    # The machine's OpenSSL configuration may refuse more than this server does.
    server_context = tls_context(encrypted)
    assert server_context is not None
    assert server_context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_client_without_a_tls_handshake_is_disconnected(
    encrypted: HttpSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "_HANDSHAKE_TIMEOUT_S", 0.05)

    async def test() -> bytes:
        async with served(ROUTES, encrypted) as serving:
            return await serving.raw(b"")

    assert in_loop(test()) == b""


def test_a_reload_applies_the_new_certificate(tmp_path: Path, encrypted: HttpSettings) -> None:
    renewed = make_certificates(tmp_path / "renewed")
    folder = renewed.ca.parent
    settings = HttpSettings(tls_certificate_file=folder / "server.pem", tls_key_file=folder / "server.key")

    async def test() -> bytes:
        async with served(ROUTES, encrypted) as serving:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await serving.get("/", ssl=client_context(renewed))
            serving.server.reload(settings)
            return (await serving.get("/", ssl=client_context(renewed))).body

    assert in_loop(test()) == b"hello"


def test_a_reload_does_not_switch_tls_off(encrypted: HttpSettings, tmp_path: Path) -> None:
    token = secret_file(tmp_path / "token", "a-token-0123456789")

    async def test() -> int:
        async with served(ROUTES, encrypted) as serving:
            with pytest.raises(CannotListen, match="Restart it"):
                serving.server.reload(HttpSettings(read_token_file=token))
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            # The tokens are unchanged, too: there are none.
            return (await serving.get("/", ssl=context)).status

    assert in_loop(test()) == 200


def test_a_key_that_is_encrypted_is_opened_with_its_password(tmp_path: Path, certificates: Certificates) -> None:
    key = tmp_path / "encrypted.key"
    openssl("pkcs8", "-topk8", "-in", certificates.ca.parent / "server.key", "-out", key, "-passout", "pass:open-it")
    key.chmod(0o600)
    settings = HttpSettings(
        tls_certificate_file=certificates.ca.parent / "server.pem",
        tls_key_file=key,
        tls_key_password_file=secret_file(tmp_path / "password", "open-it"),
    )
    assert tls_context(settings) is not None


def test_a_missing_certificate_is_refused(tmp_path: Path, certificates: Certificates) -> None:
    copy = tmp_path / "server.pem"
    copy.write_bytes((certificates.ca.parent / "server.pem").read_bytes())
    settings = HttpSettings(tls_certificate_file=copy, tls_key_file=certificates.ca.parent / "server.key")
    copy.unlink()
    with pytest.raises(CannotListen, match="can't be used with the key"):
        tls_context(settings)


def test_without_a_certificate_there_is_no_tls() -> None:
    assert tls_context(HttpSettings()) is None


def test_the_kernel_buffers_little_of_an_answer_on_accepted_connections() -> None:
    """By default the kernel buffers megabytes, so that a client that reads 10 KB/s would seem to read nothing."""
    with bound_socket("127.0.0.1:0") as listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) <= 64 << 10


def test_the_limit_of_open_files_is_raised_as_far_as_connections_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for limits, connections, expected in (
        ((1024, 524_288), 1000, (2024, 524_288)),
        ((1024, 1500), 1000, (1500, 1500)),
        ((4096, 524_288), 1000, None),
        ((1024, resource.RLIM_INFINITY), 5000, (6024, resource.RLIM_INFINITY)),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), 5000, None),
    ):
        raised: list[object] = []
        monkeypatch.setattr(resource, "getrlimit", lambda _kind, limits=limits: limits)
        monkeypatch.setattr(resource, "setrlimit", lambda _kind, limits, raised=raised: raised.append(limits))
        allow_files(connections)
        assert raised == ([expected] if expected is not None else [])

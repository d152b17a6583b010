"""Binds the address to listen on, and loads the TLS certificate."""

import errno
import ipaddress
import os
import resource
import socket
import ssl
from dataclasses import dataclass

from strandline.errors import Fatal
from strandline.node.settings.fields import split_listen_address
from strandline.node.settings.http_sections import HttpSettings

BACKLOG = 512
# Bytes of an answer that the kernel may buffer unsent.
_UNSENT = 32 << 10
# Files that a process opens besides its connections: links, segments, those of the JVM.
_OTHER_FILES = 1024
# For TLS 1.2: forward secrecy and authenticated encryption only. All ciphers of TLS 1.3 have both.
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"


class CannotListen(Fatal):
    """The address can't be bound, or the certificate can't be used."""


@dataclass(frozen=True, slots=True)
class BoundAddress:
    """Where a server listens: host, port, and a URL that works on this machine."""

    host: str
    port: int
    url: str


def bound_socket(address: str) -> socket.socket:
    """A listening socket. Raises `CannotListen`, with a remedy."""
    host, port = split_listen_address(address)
    where = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    listener = socket.socket(socket.AF_INET6 if where.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A restart must not wait for the previous process's connections in TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if where.version == 6:
            # [::] is every address of the machine, including IPv4.
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if where.is_unspecified else 1)
        # Inherited by accepted connections. Otherwise the kernel buffers megabytes for a slow reader, and shows no
        # progress for up to a minute.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
        listener.bind((str(where), port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise _cannot_listen(address, port, error) from error
    return listener


def allow_files(connections: int) -> None:
    """Raise the soft limit of open files, which is 1024 in most shells, for this number of connections, up to the hard
    limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def address_of(listener: socket.socket, *, tls: bool) -> BoundAddress:
    """The address of a listening socket."""
    host, port = listener.getsockname()[:2]
    where = ipaddress.ip_address(host)
    if where.is_unspecified:
        where = ipaddress.ip_address("::1" if where.version == 6 else "127.0.0.1")
    reached = f"[{where}]" if where.version == 6 else str(where)
    return BoundAddress(host, port, f"{'https' if tls else 'http'}://{reached}:{port}")


def tls_context(settings: HttpSettings) -> ssl.SSLContext | None:
    """None without a certificate. Raises `CannotListen`."""
    if settings.tls_certificate_file is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, settings)
    return context


def load_certificate(context: ssl.SSLContext, settings: HttpSettings) -> None:
    """Use this certificate for new connections. Raises `CannotListen`, and then nothing has changed."""
    certificate, key, password = settings.tls_certificate_file, settings.tls_key_file, settings.tls_key_password_file
    if certificate is None or key is None:
        raise CannotListen(
            "TLS can't be disabled while the server runs", remedy="Restart it to listen without a certificate"
        )
    # Always with a password: without one, OpenSSL would prompt for it on the terminal.
    opened_with = password.content.get_secret_value() if password is not None else ""
    try:
        context.load_cert_chain(certificate.path, key.path, opened_with)
    except (OSError, ssl.SSLError) as error:
        raise CannotListen(
            f"the certificate {certificate} can't be used with the key {key}: {error.strerror or error}",
            remedy="Check http.tls_certificate_file and http.tls_key_file, for example with `strandline check-config`",
        ) from error


def _cannot_listen(address: str, port: int, error: OSError) -> CannotListen:
    setting = "Set http.node_address (or http.gateway_address)"
    match error.errno:
        case errno.EADDRINUSE:
            reason = "another process listens there"
            remedy = f"Find it with `ss -ltnp 'sport = :{port}'`. {setting} to another port, or stop that process"
        case errno.EADDRNOTAVAIL:
            reason = "this machine does not have that address"
            remedy = f"{setting} to one that `ip address` shows"
        case errno.EACCES | errno.EPERM:
            reason = "this user may not listen there"
            remedy = f"{setting} to a port from 1024 on, or grant the process CAP_NET_BIND_SERVICE"
        case errno.EAFNOSUPPORT:
            reason = "this machine has no IPv6"
            remedy = f"{setting} to an address such as 127.0.0.1:{port}"
        case _:
            reason = os.strerror(error.errno) if error.errno else str(error)
            remedy = f"{setting} to an available address"
    return CannotListen(f"can't listen on {address}: {reason}", remedy=remedy)

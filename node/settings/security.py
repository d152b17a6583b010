"""Checks of combinations of TLS settings."""

import ssl
from collections.abc import Iterator
from typing import Protocol

from strandline.node.settings.files import CertificateFile, SecretFile
from strandline.node.settings.findings import Finding


class TlsSettings(Protocol):
    """The TLS settings of a section."""

    @property
    def tls_ca_file(self) -> CertificateFile | None: ...

    @property
    def tls_certificate_file(self) -> CertificateFile | None: ...

    @property
    def tls_key_file(self) -> SecretFile | None: ...

    @property
    def tls_key_password_file(self) -> SecretFile | None: ...


_FILES = ("tls_ca_file", "tls_certificate_file", "tls_key_file", "tls_key_password_file")


def unused_tls_files(section: TlsSettings, switch: str, remedy: str) -> Iterator[Finding]:
    """Findings for TLS files that are not used because `switch` leaves TLS off: the operator expects it to be on."""
    for name in _FILES:
        if getattr(section, name) is not None:
            yield Finding(f"is given, but {switch} leaves TLS off", remedy, (name,), (switch,))


def tls_file_findings(section: TlsSettings) -> Iterator[Finding]:
    """Findings for TLS files that are missing or don't match."""
    certificate, key, password = section.tls_certificate_file, section.tls_key_file, section.tls_key_password_file
    if certificate is not None and key is None:
        remedy = "The file with the certificate's private key"
        yield Finding("is needed with tls_certificate_file", remedy, ("tls_key_file",), ("tls_certificate_file",))
    if key is not None and certificate is None:
        remedy = "The file with the certificate that belongs to the key"
        yield Finding("is needed with tls_key_file", remedy, ("tls_certificate_file",), ("tls_key_file",))
    if password is not None and key is None:
        remedy = "Name the key's file in tls_key_file, or leave this out"
        yield Finding("is given without a private key", remedy, ("tls_key_password_file",), ("tls_key_file",))
    if section.tls_ca_file is not None and not _loads_as_ca(section.tls_ca_file):
        yield Finding("contains an invalid certificate", "A file of CA certificates in PEM format", _FILES[:1])
    if certificate is not None and key is not None:
        yield from _pair_findings(certificate, key, password)


def _pair_findings(certificate: CertificateFile, key: SecretFile, password: SecretFile | None) -> Iterator[Finding]:
    names = ("tls_certificate_file", "tls_key_file", "tls_key_password_file")
    encrypted = "ENCRYPTED" in key.content.get_secret_value()
    if encrypted and password is None:
        remedy = "The file with the password of the private key, which is encrypted"
        yield Finding("is needed with an encrypted tls_key_file", remedy, ("tls_key_password_file",), names)
        return
    # A password is always passed: without one, OpenSSL would prompt for it on the terminal.
    key_password = password.content.get_secret_value() if password is not None else ""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate.path, key.path, key_password)
    except ssl.SSLError as error:
        if encrypted and error.reason != "KEY_VALUES_MISMATCH":
            remedy = "The file with the right password of the private key"
            yield Finding("does not decrypt the private key", remedy, ("tls_key_password_file",), names)
        else:
            remedy = "The private key that belongs to the certificate"
            yield Finding("does not match tls_certificate_file", remedy, ("tls_key_file",), names)


def _loads_as_ca(file: CertificateFile) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=file.content)
    except ssl.SSLError:
        return False
    return True

"""Access control: separate bearer tokens for reading, writing and admin verbs. Each may have several tokens, so that
one can be replaced without interruption.

A token is sent as `Authorization: Bearer <token>`. Browsers can't send that on their own, so a read token is also
accepted as the password of HTTP Basic, with any user name. Admin verbs and writes never accept Basic: a browser would
add it to requests that another site has made.
"""

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from strandline.node.http.errors import Refused
from strandline.node.http.routes import Access
from strandline.node.settings.files import TokensFile
from strandline.node.settings.http_sections import HttpSettings

_BEARER = 'Bearer realm="strandline"'
_BASIC = 'Basic realm="strandline", charset="UTF-8"'
# Bytes: a Basic password in base 64, with a token of at most 512.
_MAX_CREDENTIALS = 2048
_TOKEN_SETTINGS = {
    Access.READ: "http.read_token_file",
    Access.WRITE: "http.write_token_file",
    Access.ADMIN: "http.admin_token_file",
}


KnownTokens = Mapping[Access, Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class _Credentials:
    """The credentials of a request."""

    token: bytes = field(repr=False)
    basic: bool


class Tokens:
    """The tokens of the settings, which a reload replaces. Access without a token is open, except ADMIN."""

    def __init__(self, settings: HttpSettings) -> None:
        self._by_access: KnownTokens = {}
        self.version = 0
        """Changes with the tokens."""
        self.replace(settings)

    def __repr__(self) -> str:
        return f"Tokens({', '.join(self._by_access)})"

    def replace(self, settings: HttpSettings) -> None:
        """Use the tokens of these settings from now on."""
        files: dict[Access, TokensFile | None] = {
            Access.READ: settings.read_token_file,
            Access.WRITE: settings.write_token_file,
            Access.ADMIN: settings.admin_token_file,
        }
        self._by_access = {
            access: tuple(token.get_secret_value().encode() for token in file.tokens)
            for access, file in files.items()
            if file is not None
        }
        self.version += 1

    def requires_token(self, access: Access) -> bool:
        """Whether this access requires a token. For OPEN: whether any access has tokens."""
        if access is Access.OPEN:
            return bool(self._by_access)
        return access is Access.ADMIN or access in self._by_access

    def check(self, path: str, headers: Mapping[str, str], access: Access) -> None:
        """Raises `Refused` (401 or 403) unless a request to this path with these headers has this access."""
        known = self._by_access
        if access is Access.ADMIN and Access.ADMIN not in known:
            raise Refused(
                403,
                "forbidden",
                "admin verbs are disabled, because there is no admin token",
                remedy="Set http.admin_token_file to a file with a token, and reload",
            )
        if access is Access.OPEN or not self.requires_token(access):
            return
        credentials = _credentials_of(headers.get("Authorization", ""))
        if credentials is None:
            raise _unauthorized(path, headers, access, "a token is required")
        held = _kinds_of(credentials.token, known)
        if not held:
            raise _unauthorized(path, headers, access, "the token is unknown")
        if credentials.basic and access is not Access.READ:
            raise Refused(403, "forbidden", f"{access} access requires a bearer token, not a password")
        allowed = {access} | ({Access.ADMIN} if access is Access.READ else set())
        if not held & allowed:
            raise Refused(
                403,
                "forbidden",
                f"the token does not allow {access} access",
                remedy=f"Use the token of {_TOKEN_SETTINGS[access]}",
            )


def _kinds_of(token: bytes, known: KnownTokens) -> set[Access]:
    """The kinds of access that a token allows. All tokens are compared, in constant time."""
    same = [(access, hmac.compare_digest(token, right)) for access, tokens in known.items() for right in tokens]
    return {access for access, is_same in same if is_same}


def _credentials_of(authorization: str) -> _Credentials | None:
    scheme, _, rest = authorization.partition(" ")
    rest = rest.strip()
    if not rest or len(rest) > _MAX_CREDENTIALS:
        return None
    # Bytes of a header that are not UTF-8 are lone surrogates.
    sent = rest.encode(errors="surrogateescape")
    if scheme.lower() == "bearer":
        return _Credentials(sent, basic=False)
    if scheme.lower() != "basic":
        return None
    try:
        _, colon, password = base64.b64decode(sent, validate=True).partition(b":")
    except binascii.Error:
        return None
    return _Credentials(password, basic=True) if colon else None


def _unauthorized(path: str, headers: Mapping[str, str], access: Access, reason: str) -> Refused:
    # Basic only for browsers, and as the only challenge: after another one, a browser asks for no password.
    is_browser = access is Access.READ and (path == "/" or "text/html" in headers.get("Accept", ""))
    challenge = _BASIC if is_browser else _BEARER
    remedy = f"Send `Authorization: Bearer <token>` with the token of {_TOKEN_SETTINGS[access]}"
    return Refused(401, "unauthorized", reason, remedy=remedy, headers=(("WWW-Authenticate", challenge),))

"""Who may call what: bearer tokens for reading, writing and admin verbs, apart from each other. Each may have several,
so that one can be replaced without a gap.

A token comes as `Authorization: Bearer <token>`. A browser can't be told to send that, so that for reading the token
may come as the password of HTTP Basic, too, whatever the user's name. Admin verbs and writes never take Basic: a
browser would send it along with a request that another site has made.
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
# A password of Basic in base 64; no token is longer than 512.
_LONGEST = 2048
_TOKEN_SETTINGS = {
    Access.READ: "http.read_token_file",
    Access.WRITE: "http.write_token_file",
    Access.ADMIN: "http.admin_token_file",
}


KnownTokens = Mapping[Access, Sequence[bytes]]


@dataclass(frozen=True, slots=True)
class _Presented:
    """What a request has to show."""

    token: bytes = field(repr=False)
    basic: bool


class Tokens:
    """The tokens of the settings, which a reload replaces. Access that has no token is open, but for ADMIN."""

    def __init__(self, settings: HttpSettings) -> None:
        self._by_access: KnownTokens = {}
        self.version = 0
        """Changes with the tokens."""
        self.replace(settings)

    def __repr__(self) -> str:
        return f"Tokens({', '.join(self._by_access)})"

    def replace(self, settings: HttpSettings) -> None:
        """Requests from now on are held to the tokens of these settings."""
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

    def guards(self, access: Access) -> bool:
        """Whether callers have to show something: for this access or, where it is open to all, for any."""
        if access is Access.OPEN:
            return bool(self._by_access)
        return access is Access.ADMIN or access in self._by_access

    def check(self, path: str, headers: Mapping[str, str], access: Access) -> None:
        """Raises `Refused` (401 or 403) unless a request to this path, with these header fields, may do this."""
        known = self._by_access
        if access is Access.ADMIN and Access.ADMIN not in known:
            raise Refused(
                403,
                "forbidden",
                "admin verbs are off, since there is no admin token",
                remedy="Name a file with a token in http.admin_token_file and reload",
            )
        if access is Access.OPEN or not self.guards(access):
            return
        presented = _presented(headers.get("Authorization", ""))
        if presented is None:
            raise _unauthorized(path, headers, access, "a token is needed")
        held = _kinds_of(presented.token, known)
        if not held:
            raise _unauthorized(path, headers, access, "the token is not known")
        if presented.basic and access is not Access.READ:
            raise Refused(403, "forbidden", f"{access} access takes a bearer token, not a password")
        allowed = {access} | ({Access.ADMIN} if access is Access.READ else set())
        if not held & allowed:
            raise Refused(
                403,
                "forbidden",
                f"the token is not one for {access} access",
                remedy=f"Use the token of {_TOKEN_SETTINGS[access]}",
            )


def _kinds_of(token: bytes, known: KnownTokens) -> set[Access]:
    """What a token is good for. Each one is compared, in a time that tells nothing about where it differs."""
    same = [(access, hmac.compare_digest(token, right)) for access, tokens in known.items() for right in tokens]
    return {access for access, is_same in same if is_same}


def _presented(authorization: str) -> _Presented | None:
    scheme, _, rest = authorization.partition(" ")
    rest = rest.strip()
    if not rest or len(rest) > _LONGEST:
        return None
    # A header's bytes that are no UTF-8 come as lone surrogates.
    sent = rest.encode(errors="surrogateescape")
    if scheme.lower() == "bearer":
        return _Presented(sent, basic=False)
    if scheme.lower() != "basic":
        return None
    try:
        _, colon, password = base64.b64decode(sent, validate=True).partition(b":")
    except binascii.Error:
        return None
    return _Presented(password, basic=True) if colon else None


def _unauthorized(path: str, headers: Mapping[str, str], access: Access, reason: str) -> Refused:
    # Only where a person looks, and then alone: a browser that sees another challenge before it asks for no password.
    person = access is Access.READ and (path == "/" or "text/html" in headers.get("Accept", ""))
    challenge = _BASIC if person else _BEARER
    remedy = f"Send `Authorization: Bearer <token>` with the token of {_TOKEN_SETTINGS[access]}"
    return Refused(401, "unauthorized", reason, remedy=remedy, headers=(("WWW-Authenticate", challenge),))

"""The page's own files: one document, and what it loads, below a path that holds the hash of all of them.

A browser keeps what lies below that path for good, and asks each time whether the document is still the same; so a node
of another version is never shown with half of the old one's files. No file has anything from outside in it, and the
policy that goes with the document has the browser refuse what somebody might put there.
"""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files

from strandline.node.http.errors import Refused
from strandline.node.http.requests import Request
from strandline.node.http.responses import Fields, Response
from strandline.node.http.routes import Access, Route
from strandline.node.page.language import MODULE, language_module

# The last of them has the browser refuse to make markup or code of a text, wherever that is tried.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

_DOCUMENT = "index.html"
_PLACE = "{{assets}}"
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_COMMON: Fields = (("Content-Security-Policy", CONTENT_SECURITY_POLICY),)
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_FIRST = "no-cache"
_TAGS = re.compile(r'(?:W/)?"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Asset:
    """A file as it is sent."""

    name: str
    content: bytes
    digest: str

    @property
    def content_type(self) -> str:
        """By the ending of its name."""
        return _TYPES[self.name[self.name.rindex(".") :]]


@dataclass(frozen=True, slots=True)
class Assets:
    """The document and the files that it loads, which lie below `/page/<digest>/`."""

    document: Asset
    loaded: dict[str, Asset]
    digest: str


def load_assets() -> Assets:
    """Read all of them, once, at the start."""
    folder = files(__package__) / "static"
    found = {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(tuple(_TYPES))
    }
    found[MODULE] = language_module()
    page = found.pop(_DOCUMENT)
    whole = hashlib.sha256()
    for name, content in found.items():
        whole.update(b"%d %s %d " % (len(name), name.encode(), len(content)) + content)
    digest = whole.hexdigest()[:16]
    loaded = {name: _asset(name, content) for name, content in found.items()}
    return Assets(_asset(_DOCUMENT, page.replace(_PLACE.encode(), f"/page/{digest}".encode())), loaded, digest)


def asset_routes(assets: Assets) -> tuple[Route, ...]:
    """The page at `/`, and its files, for those who may read."""

    async def document(request: Request) -> Response:
        return _sent(request, assets.document, _ASK_FIRST)

    async def loaded(request: Request) -> Response:
        asset = assets.loaded.get(request.wildcard("name"))
        if asset is None or request.wildcard("digest") != assets.digest:
            # Of another version, perhaps: reloading the page asks for the files of this one.
            raise Refused(404, "not_found", "there is no such file of the page", remedy="Reload the page")
        return _sent(request, asset, _FOR_GOOD)

    return (
        Route(("GET",), "/", document, Access.READ),
        Route(("GET",), "/page/{digest}/{name}", loaded, Access.READ),
    )


def _asset(name: str, content: bytes) -> Asset:
    return Asset(name, content, hashlib.sha256(content).hexdigest()[:32])


def _sent(request: Request, asset: Asset, caching: str) -> Response:
    headers = (*_COMMON, ("Cache-Control", caching), ("ETag", f'"{asset.digest}"'))
    known = request.headers.get("if-none-match", "")
    if known.strip() == "*" or asset.digest in _TAGS.findall(known):
        return Response(status=304, headers=headers)
    return Response(asset.content, content_type=f"{asset.content_type}; charset=utf-8", headers=headers)

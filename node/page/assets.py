"""The static files of the page: one document, and the files that it loads from a path with the hash of all of them.

Browsers cache these files forever, and revalidate the document on each load. So files of different versions are never
mixed. The files contain nothing from outside, and the document's Content-Security-Policy makes browsers refuse injected
content.
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

# The last directive makes the browser refuse to turn text into markup or code.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)

_DOCUMENT = "index.html"
_ASSETS_PATH = "{{assets}}"
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_COMMON: Fields = (("Content-Security-Policy", CONTENT_SECURITY_POLICY),)
_IMMUTABLE = "public, max-age=31536000, immutable"
_REVALIDATE = "no-cache"
_TAGS = re.compile(r'(?:W/)?"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Asset:
    """A static file, and its hash."""

    name: str
    content: bytes
    digest: str

    @property
    def content_type(self) -> str:
        """From the extension of its name."""
        return _TYPES[self.name[self.name.rindex(".") :]]


@dataclass(frozen=True, slots=True)
class Assets:
    """The document, and the files that it loads from `/page/<digest>/`."""

    document: Asset
    loaded: dict[str, Asset]
    digest: str


def load_assets() -> Assets:
    """Read all files. Called once, at the start."""
    folder = files(__package__) / "static"
    found = {
        entry.name: entry.read_bytes()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(tuple(_TYPES))
    }
    found[MODULE] = language_module()
    page = found.pop(_DOCUMENT)
    combined = hashlib.sha256()
    for name, content in found.items():
        combined.update(b"%d %s %d " % (len(name), name.encode(), len(content)) + content)
    digest = combined.hexdigest()[:16]
    loaded = {name: _asset(name, content) for name, content in found.items()}
    return Assets(_asset(_DOCUMENT, page.replace(_ASSETS_PATH.encode(), f"/page/{digest}".encode())), loaded, digest)


def asset_routes(assets: Assets) -> tuple[Route, ...]:
    """The routes of the page at `/` and of its files; both need the read token."""

    async def document(request: Request) -> Response:
        return _sent(request, assets.document, _REVALIDATE)

    async def loaded(request: Request) -> Response:
        asset = assets.loaded.get(request.wildcard("name"))
        if asset is None or request.wildcard("digest") != assets.digest:
            # Probably of another version: reloading the page requests this version's files.
            raise Refused(404, "not_found", "the page has no such file", remedy="Reload the page")
        return _sent(request, asset, _IMMUTABLE)

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

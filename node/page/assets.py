"""The page's own files: one document, and what it loads, below a path that holds the hash of all of them.

A browser keeps what lies below that path for good, and asks each time whether the document is still the same; so a node
of another version is never shown with half of the old one's files. No file has anything from outside in it, and the
policy that goes with the document has the browser refuse what somebody might put there.
"""

import hashlib
from dataclasses import dataclass
from importlib.resources import files

from aiohttp import hdrs, web

from strandline.node.http.routes import Access, Route

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
_COMMON = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
}
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_FIRST = "no-cache"


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
    page = found.pop(_DOCUMENT)
    whole = hashlib.sha256()
    for name, content in found.items():
        whole.update(b"%d %s %d " % (len(name), name.encode(), len(content)) + content)
    digest = whole.hexdigest()[:16]
    loaded = {name: _asset(name, content) for name, content in found.items()}
    return Assets(_asset(_DOCUMENT, page.replace(_PLACE.encode(), f"/page/{digest}".encode())), loaded, digest)


def asset_routes(assets: Assets) -> tuple[Route, ...]:
    """The page at `/`, and its files, for those who may read."""

    async def document(request: web.Request) -> web.StreamResponse:
        return _sent(request, assets.document, _ASK_FIRST)

    async def loaded(request: web.Request) -> web.StreamResponse:
        asset = assets.loaded.get(request.match_info["name"])
        if asset is None or request.match_info["digest"] != assets.digest:
            # Of another version, perhaps: reloading the page asks for the files of this one.
            raise web.HTTPNotFound(text="No such file of the page\n", headers={hdrs.CACHE_CONTROL: "no-store"})
        return _sent(request, asset, _FOR_GOOD)

    return (
        Route(("GET",), "/", document, Access.READ),
        Route(("GET",), "/page/{digest}/{name}", loaded, Access.READ),
    )


def _asset(name: str, content: bytes) -> Asset:
    return Asset(name, content, hashlib.sha256(content).hexdigest()[:32])


def _sent(request: web.Request, asset: Asset, caching: str) -> web.Response:
    headers = {**_COMMON, hdrs.CACHE_CONTROL: caching, hdrs.ETAG: f'"{asset.digest}"'}
    known = request.if_none_match or ()
    if any(tag.value in (asset.digest, "*") for tag in known):
        return web.Response(status=304, headers=headers)
    return web.Response(body=asset.content, headers=headers, content_type=asset.content_type, charset="utf-8")

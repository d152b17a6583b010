import asyncio
import re
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from strandline.node.http.routes import Access
from strandline.node.page.assets import CONTENT_SECURITY_POLICY, Assets, asset_routes, load_assets

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def assets() -> Assets:
    return load_assets()


def get(assets: Assets, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes, Mapping[str, str]]:
    async def ask() -> tuple[int, bytes, Mapping[str, str]]:
        app = web.Application()
        for route in asset_routes(assets):
            for method in route.methods:
                app.router.add_route(method, route.path, route.handler)
        async with TestClient(TestServer(app)) as client, client.get(path, headers=headers) as response:
            return response.status, await response.read(), response.headers.copy()

    return asyncio.run(ask())


def test_the_document_names_its_files_and_each_of_them_is_there(assets: Assets) -> None:
    status, document, headers = get(assets, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    named = re.findall(rb'(?:href|src)="(/page/[^"]+)"', document)
    assert len(named) >= 4
    assert {get(assets, path.decode())[0] for path in named} == {200}
    assert b"{{" not in document


def test_every_import_of_a_module_names_a_file_that_is_there(assets: Assets) -> None:
    imported = {
        name
        for asset in assets.loaded.values()
        if asset.name.endswith(".js")
        for name in re.findall(r'from "\./([^"]+)"', asset.content.decode())
    }
    assert "dom.js" in imported
    assert imported <= assets.loaded.keys()


def test_the_document_is_asked_about_each_time_and_its_files_are_kept_for_good(assets: Assets) -> None:
    assert get(assets, "/")[2]["Cache-Control"] == "no-cache"
    assert "immutable" in get(assets, f"/page/{assets.digest}/style.css")[2]["Cache-Control"]


@pytest.mark.parametrize("name", ["", "style.css"])
def test_a_browser_that_has_the_file_is_told_so(assets: Assets, name: str) -> None:
    path = f"/page/{assets.digest}/{name}" if name else "/"
    tag = get(assets, path)[2]["ETag"]
    assert not tag.startswith("W/")
    assert get(assets, path, {"If-None-Match": tag})[:2] == (304, b"")
    assert get(assets, path, {"If-None-Match": '"another"'})[0] == 200


@pytest.mark.parametrize(
    "path", ["/page/0123456789abcdef/main.js", "/page/{digest}/main.py", "/page/{digest}/..%2Fapi.py"]
)
def test_what_is_no_file_of_this_version_is_not_found_and_not_kept(assets: Assets, path: str) -> None:
    status, _, headers = get(assets, path.format(digest=assets.digest))
    assert status == 404
    assert headers["Cache-Control"] == "no-store"


def test_the_policy_lets_nothing_in_from_elsewhere(assets: Assets) -> None:
    assert get(assets, "/")[2]["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    policy = dict(part.strip().split(" ", 1) for part in CONTENT_SECURITY_POLICY.split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"


def test_no_file_names_another_host_or_reads_text_as_markup(assets: Assets) -> None:
    for asset in (assets.document, *assets.loaded.values()):
        text = asset.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]+\.", text), asset.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            asset.name
        )


def test_only_those_who_may_read_get_the_page(assets: Assets) -> None:
    assert {route.access for route in asset_routes(assets)} == {Access.READ}

import re
from collections.abc import Mapping

import orjson
import pytest
from yarl import URL

from strandline.node.http.routes import Access
from strandline.node.page.assets import CONTENT_SECURITY_POLICY, Assets, asset_routes, load_assets
from support.http_servers import Reply, in_loop, served

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def assets() -> Assets:
    return load_assets()


def get(assets: Assets, path: str, headers: Mapping[str, str] | None = None) -> tuple[int, bytes, Mapping[str, str]]:
    reply = exchange(assets, "GET", path, headers)
    return reply.status, reply.body, reply.headers


def exchange(assets: Assets, method: str, path: str, headers: Mapping[str, str] | None = None) -> Reply:
    async def send() -> Reply:
        async with served(asset_routes(assets)) as serving:
            # Already encoded: otherwise the client would decode unreserved characters.
            url = URL(path, encoded=True)
            async with serving.client.request(method, url, headers=headers) as response:
                return Reply(response.status, response.headers, await response.read())

    return in_loop(send())


def test_the_document_names_its_files_and_each_of_them_exists(assets: Assets) -> None:
    status, document, headers = get(assets, "/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    named = re.findall(rb'(?:href|src)="(/page/[^"]+)"', document)
    assert len(named) >= 4
    assert {get(assets, path.decode())[0] for path in named} == {200}
    assert b"{{" not in document


def test_every_import_of_a_module_names_an_existing_file(assets: Assets) -> None:
    imported = {
        name
        for asset in assets.loaded.values()
        if asset.name.endswith(".js")
        for name in re.findall(r'from "\./([^"]+)"', asset.content.decode())
    }
    assert "dom.js" in imported
    assert imported <= assets.loaded.keys()


def test_the_document_is_revalidated_and_its_files_are_immutable(assets: Assets) -> None:
    assert get(assets, "/")[2]["Cache-Control"] == "no-cache"
    assert "immutable" in get(assets, f"/page/{assets.digest}/style.css")[2]["Cache-Control"]


@pytest.mark.parametrize("name", ["", "style.css"])
def test_a_browser_that_has_the_file_gets_not_modified(assets: Assets, name: str) -> None:
    path = f"/page/{assets.digest}/{name}" if name else "/"
    tag = get(assets, path)[2]["ETag"]
    assert not tag.startswith("W/")
    assert get(assets, path, {"If-None-Match": tag})[:2] == (304, b"")
    assert get(assets, path, {"If-None-Match": '"another"'})[0] == 200


@pytest.mark.parametrize("if_none_match", ["*", "W/{tag}", '"another", {tag}', '"another",W/{tag} , "third"'])
def test_a_browser_may_send_the_etag_in_any_valid_form(assets: Assets, if_none_match: str) -> None:
    headers = get(assets, "/")[2]
    status, body, not_modified = get(assets, "/", {"If-None-Match": if_none_match.format(tag=headers["ETag"])})
    assert (status, body) == (304, b"")
    assert {name: not_modified[name] for name in ("ETag", "Cache-Control", "Content-Security-Policy")} == {
        name: headers[name] for name in ("ETag", "Cache-Control", "Content-Security-Policy")
    }
    assert "Content-Type" not in not_modified


@pytest.mark.parametrize("if_none_match", ["", "{digest}", '"{digest}x"', '"x{digest}"'])
def test_a_similar_etag_is_another_one(assets: Assets, if_none_match: str) -> None:
    digest = get(assets, "/")[2]["ETag"].strip('"')
    assert get(assets, "/", {"If-None-Match": if_none_match.format(digest=digest)})[0] == 200


def test_a_head_of_a_file_has_its_length_and_no_body(assets: Assets) -> None:
    path = f"/page/{assets.digest}/style.css"
    reply = exchange(assets, "HEAD", path)
    _, body, headers = get(assets, path)
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["Content-Length"]) == len(body) > 0
    assert (reply.headers["ETag"], reply.headers["Content-Type"]) == (headers["ETag"], headers["Content-Type"])


def test_a_post_to_a_file_is_refused_with_the_allowed_methods(assets: Assets) -> None:
    reply = exchange(assets, "POST", "/")
    assert (reply.status, reply.headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path", ["/page/0123456789abcdef/main.js", "/page/{digest}/main.py", "/page/{digest}/..%2Fapi.py"]
)
def test_a_file_of_another_version_is_not_found_and_not_cached(assets: Assets, path: str) -> None:
    status, body, headers = get(assets, path.format(digest=assets.digest))
    assert status == 404
    assert "Reload the page" in orjson.loads(body)["error"]
    assert headers["Cache-Control"] == "no-store"


def test_the_content_security_policy_allows_no_other_origin(assets: Assets) -> None:
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


def test_the_page_needs_read_access(assets: Assets) -> None:
    assert {route.access for route in asset_routes(assets)} == {Access.READ}

"""Tokens: permission to read, to write and to use admin verbs."""

import base64
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from strandline.node.http import auth
from strandline.node.http.requests import Request
from strandline.node.http.responses import Response
from strandline.node.http.routes import Access, Route
from strandline.node.settings.http_sections import HttpSettings
from support.http_servers import Reply, in_loop, secret_file, served

pytestmark = pytest.mark.unit

READ, WRITE, ADMIN = "read-token-0123456789", "write-token-012345678", "admin-token-012345678"
NEW_READ, NEW_WRITE = "new-read-token-0123456789", "new-write-token-0123456789"


async def handler(_request: Request) -> Response:
    return Response.text("done")


ROUTES = (
    Route(("GET",), "/", handler, Access.READ),
    *(Route(("GET", "POST"), f"/{access}", handler, access) for access in Access),
)


def settings(folder: Path, **tokens: str) -> HttpSettings:
    files = {f"{kind}_token_file": secret_file(folder / kind, token) for kind, token in tokens.items()}
    return HttpSettings(**files)


@pytest.fixture
def all_tokens(tmp_path: Path) -> HttpSettings:
    return settings(tmp_path, read=READ, write=WRITE, admin=ADMIN)


def get(http: HttpSettings, path: str, authorization: str | None = None, **headers: str) -> Reply:
    async def test() -> Reply:
        async with served(ROUTES, http) as serving:
            sent_headers = headers | ({"Authorization": authorization} if authorization is not None else {})
            return await serving.get(path, headers=sent_headers)

    return in_loop(test())


def bearer(token: str) -> str:
    return f"Bearer {token}"


def basic(password: str, user: str = "user") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/open", None, 200),
        ("/read", READ, 200),
        ("/read", ADMIN, 200),
        ("/read", WRITE, 403),
        ("/read", None, 401),
        ("/read", "read-token-0123456780", 401),
        ("/write", WRITE, 200),
        ("/write", READ, 403),
        ("/write", ADMIN, 403),
        ("/write", None, 401),
        ("/admin", ADMIN, 200),
        ("/admin", READ, 403),
        ("/admin", WRITE, 403),
        ("/admin", None, 401),
        ("/admin", "nonsense", 401),
    ],
)
def test_each_token_gives_its_own_access(all_tokens: HttpSettings, path: str, token: str | None, status: int) -> None:
    reply = get(all_tokens, path, None if token is None else bearer(token))
    assert reply.status == status
    assert ("WWW-Authenticate" in reply.headers) == (status == 401)


def test_a_missing_token_is_requested_with_the_bearer_scheme_only(all_tokens: HttpSettings) -> None:
    reply = get(all_tokens, "/read")
    assert reply.headers["WWW-Authenticate"] == 'Bearer realm="strandline"'
    body = orjson.loads(reply.body)
    assert body["errorType"] == "unauthorized"
    assert "http.read_token_file" in body["error"]


@pytest.mark.parametrize(("path", "accept"), [("/", "*/*"), ("/read", "text/html,application/xhtml+xml")])
def test_a_password_is_requested_from_a_browser(all_tokens: HttpSettings, path: str, accept: str) -> None:
    """Basic must be the only challenge: Chromium ignores it after another one."""
    challenge = get(all_tokens, path, Accept=accept).headers["WWW-Authenticate"]
    assert challenge == 'Basic realm="strandline", charset="UTF-8"'


def test_no_password_is_requested_where_it_would_not_be_accepted(all_tokens: HttpSettings) -> None:
    assert "Basic" not in get(all_tokens, "/admin", Accept="text/html").headers["WWW-Authenticate"]


@pytest.mark.parametrize(
    ("path", "authorization", "status"),
    [
        ("/", basic(READ), 200),
        ("/read", basic(READ, user=""), 200),
        ("/read", basic(ADMIN), 200),
        ("/read", basic(WRITE), 403),
        ("/read", basic("wrong"), 401),
        ("/write", basic(WRITE), 403),
        ("/admin", basic(ADMIN), 403),
        ("/read", "Basic !!!", 401),
        ("/read", "Basic " + base64.b64encode(READ.encode()).decode(), 401),
        ("/read", "Digest " + READ, 401),
        ("/read", READ, 401),
        ("/read", "", 401),
        ("/read", "Bearer", 401),
        ("/read", "bearer   " + READ + "  ", 200),
        ("/read", "Bearer " + "x" * 5000, 401),
        ("/read", "Bearer " + READ + "x", 401),
        ("/read", "Bearer " + READ[:-1], 401),
        ("/read", "Bearer é\udcff", 401),
    ],
)
def test_a_password_gives_read_access_only(
    all_tokens: HttpSettings, path: str, authorization: str, status: int
) -> None:
    assert get(all_tokens, path, authorization).status == status


@pytest.mark.parametrize(("path", "status"), [("/open", 200), ("/read", 200), ("/write", 200), ("/admin", 403)])
def test_without_tokens_all_but_admin_verbs_are_open(path: str, status: int) -> None:
    reply = get(HttpSettings(), path)
    assert reply.status == status
    if status == 403:
        assert "http.admin_token_file" in orjson.loads(reply.body)["error"]


@pytest.mark.parametrize("authorization", [bearer(READ), bearer(""), basic(READ)])
def test_admin_verbs_are_disabled_without_an_admin_token_whatever_is_sent(tmp_path: Path, authorization: str) -> None:
    assert get(settings(tmp_path, read=READ), "/admin", authorization).status == 403


def test_reading_stays_open_when_only_admin_verbs_have_a_token(tmp_path: Path) -> None:
    assert get(settings(tmp_path, admin=ADMIN), "/read").status == 200


def test_tokens_are_replaced_by_a_reload(tmp_path: Path, all_tokens: HttpSettings) -> None:
    (tmp_path / "new").mkdir()
    renewed = settings(tmp_path / "new", read="another-token-0123456789")

    async def test() -> list[int]:
        async with served(ROUTES, all_tokens) as serving:
            serving.server.reload(renewed)
            attempts = [
                ("/read", READ), ("/read", "another-token-0123456789"), ("/read", ADMIN), ("/admin", ADMIN),
            ]  # fmt: skip
            return [
                (await serving.get(path, headers={"Authorization": bearer(token)})).status for path, token in attempts
            ]

    assert in_loop(test()) == [401, 200, 401, 403]


def test_a_token_is_rotated_without_refusing_a_sender(tmp_path: Path) -> None:
    """Both tokens are valid until a reload removes the old one."""

    async def test() -> list[list[int]]:
        statuses = []
        async with served(ROUTES, settings(tmp_path, write=WRITE)) as serving:
            for lines in (f"{WRITE}", f"{WRITE}\n{NEW_WRITE}", f"\n{NEW_WRITE}\n\n{WRITE}\n", f"{NEW_WRITE}"):
                serving.server.reload(settings(tmp_path, write=lines))
                headers_of_tokens = (
                    {"Authorization": bearer(token)} for token in (WRITE, NEW_WRITE, f"{WRITE}\n{NEW_WRITE}"[:8])
                )
                statuses.append(
                    [(await serving.get("/write", headers=headers)).status for headers in headers_of_tokens]
                )
        return statuses

    assert in_loop(test()) == [[200, 401, 401], [200, 200, 401], [200, 200, 401], [401, 200, 401]]


def test_each_of_several_tokens_gives_only_the_access_of_its_file(tmp_path: Path) -> None:
    both = settings(tmp_path, read=f"{READ}\n{NEW_READ}", write=f"{WRITE}\n{NEW_WRITE}")
    for token in (READ, NEW_READ):
        assert get(both, "/read", bearer(token)).status == 200
        assert get(both, "/read", basic(token)).status == 200
        assert get(both, "/write", bearer(token)).status == 403
    for token in (WRITE, NEW_WRITE):
        assert get(both, "/write", bearer(token)).status == 200
        assert get(both, "/read", bearer(token)).status == 403


def test_with_a_token_any_host_name_is_accepted(all_tokens: HttpSettings) -> None:
    assert get(all_tokens, "/read", bearer(READ), Host="metrics.example").status == 200
    assert get(all_tokens, "/open", Host="metrics.example").status == 200
    assert get(HttpSettings(), "/open", Host="metrics.example").status == 403


def test_every_token_is_compared_in_constant_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    all_settings = settings(tmp_path, read=f"{READ}\n{NEW_READ}", write=f"{WRITE}\n{NEW_WRITE}", admin=ADMIN)
    compared: list[tuple[bytes, bytes]] = []
    real = auth.hmac.compare_digest

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((left, right))
        return real(left, right)

    monkeypatch.setattr(auth.hmac, "compare_digest", compare)
    for token in (READ, NEW_READ, WRITE, ADMIN, "none"):
        compared.clear()
        get(all_settings, "/read", bearer(token))
        known = (READ, NEW_READ, WRITE, NEW_WRITE, ADMIN)
        assert sorted(right for _, right in compared) == sorted(token.encode() for token in known)
        assert {left for left, _ in compared} == {token.encode()}


def test_tokens_are_in_no_log_and_no_repr(all_tokens: HttpSettings) -> None:
    with capture_logs() as logs:
        get(all_tokens, "/read", bearer(WRITE))
        get(all_tokens, "/read", basic(WRITE))
    assert WRITE not in str(logs)
    assert any(line["event"] == "request refused" for line in logs)
    text = repr(auth.Tokens(all_tokens))
    assert not any(token in text for token in (READ, WRITE, ADMIN))


@given(st.text(st.characters(exclude_characters="\r\n\0"), max_size=40))
def test_no_other_header_gives_access(header: str) -> None:
    known = {Access.READ: [READ.encode(), NEW_READ.encode()], Access.ADMIN: [ADMIN.encode()]}
    sent = header.encode(errors="surrogateescape") if not any("\ud800" <= c <= "\udfff" for c in header) else b""
    kinds = auth._kinds_of(sent, known)
    assert kinds == {access for access, tokens in known.items() if sent in tokens}

"""Errors and data in the API's envelope."""

import json

import pytest

from strandline.errors import ExitCode, Retryable, StrandlineError
from strandline.node.client.envelope import Reply, parse_reply
from strandline.node.client.errors import (
    AccessDenied,
    NodeBusy,
    NodeNotReady,
    NodeRefused,
    NodeUnreachable,
    NotANode,
    QuestionWrong,
)

pytestmark = pytest.mark.unit

URL = "http://node:9460"


def reply(status: int, content: object, kind: str = "application/json") -> Reply:
    return Reply(URL, status, kind, content if isinstance(content, bytes) else json.dumps(content).encode())


def fault(status: int, kind: str, reason: str = "because") -> StrandlineError:
    with pytest.raises(StrandlineError) as raised:
        parse_reply(reply(status, {"status": "error", "errorType": kind, "error": reason}))
    return raised.value


def test_a_successful_answer_has_data_warnings_and_infos() -> None:
    envelope = parse_reply(reply(200, {"status": "success", "data": [1], "warnings": ["a", 2], "infos": ["b"]}))
    assert (envelope.data, envelope.warnings, envelope.infos) == ([1], ("a",), ("b",))
    envelope = parse_reply(reply(200, {"status": "success", "data": []}))
    assert (envelope.warnings, envelope.infos) == ((), ())


def test_a_node_that_is_not_ready_is_reported_with_its_reason_and_its_own_exit_code() -> None:
    error = fault(503, "unavailable", "shard 0 is replaying (40 %)")
    assert type(error) is NodeNotReady
    assert error.exit_code == ExitCode.NOT_READY
    assert "shard 0 is replaying (40 %)" in error.message
    assert f"{URL}/-/ready" in error.remedy


def test_an_invalid_request_is_reported_with_the_node_s_message() -> None:
    error = fault(400, "bad_data", "'up{' is not a selector")
    assert type(error) is QuestionWrong
    assert (error.message, error.exit_code) == ("'up{' is not a selector", ExitCode.USAGE)


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (422, "execution", NodeRefused),
        (500, "internal", NodeRefused),
        (503, "timeout", NodeBusy),
        (499, "canceled", NodeBusy),
        (429, "too_many", NodeBusy),
        (401, "unauthorized", AccessDenied),
        (403, "forbidden", AccessDenied),
        (404, "not_found", NotANode),
    ],
)
def test_errors_have_different_types(status: int, kind: str, expected: type[StrandlineError]) -> None:
    assert type(fault(status, kind)) is expected


def test_only_temporary_errors_are_retryable() -> None:
    assert [kind for kind in (NodeBusy, NodeNotReady, NodeUnreachable) if not issubclass(kind, Retryable)] == []
    assert not any(issubclass(kind, Retryable) for kind in (AccessDenied, NodeRefused, NotANode, QuestionWrong))


def test_without_a_token_the_remedy_names_the_option() -> None:
    error = fault(401, "unauthorized", "a token is needed")
    assert "a token is needed" in error.message
    assert "--token-file" in error.remedy


def test_a_node_s_message_is_escaped_and_truncated() -> None:
    error = fault(422, "execution", "\x1b[2J" + "x" * 5000)
    assert "\x1b" not in error.message
    assert len(error.message) < 1200


@pytest.mark.parametrize(
    ("status", "content", "kind"),
    [
        (200, b"<html>hello</html>", "text/html"),
        (200, b'{"status":', "application/json"),
        (200, b"[" * 100_000, "application/json"),
        (200, ["success"], "application/json"),
        (200, {"data": []}, "application/json"),
        (404, b"404 page not found", "text/plain"),
        (302, b"", ""),
    ],
)
def test_a_server_with_other_answers_is_not_accepted_as_a_node(status: int, content: object, kind: str) -> None:
    with pytest.raises(NotANode, match="which is not Prometheus' API") as raised:
        parse_reply(reply(status, content, kind))
    assert str(status) in raised.value.message
    assert "http.node_address" in raised.value.remedy


def test_a_proxy_without_its_server_is_not_taken_for_a_wrong_address() -> None:
    with pytest.raises(NodeUnreachable, match="502, as proxies do"):
        parse_reply(reply(502, b"<html>Bad Gateway</html>", "text/html"))


def test_a_successful_envelope_with_an_error_status_is_refused() -> None:
    with pytest.raises(StrandlineError):
        parse_reply(reply(500, {"status": "success", "data": []}))

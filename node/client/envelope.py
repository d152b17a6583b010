"""The envelope of Prometheus' API: its data and warnings, and the errors that it stands for."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from strandline.errors import StrandlineError
from strandline.node.client.errors import (
    AccessDenied,
    NodeBusy,
    NodeNotReady,
    NodeRefused,
    NodeUnreachable,
    NotANode,
    QuestionWrong,
)
from strandline.node.client.notation import single_line

_MAX_REASON_LENGTH = 1000
_ACCESS_REMEDY = "Give the file of the read token with --token-file, or in http.read_token_file of the settings"
_PROXY_STATUSES = (502, 503, 504)
_RETRYABLE_STATUSES = (429, *_PROXY_STATUSES)
_ADDRESS_REMEDY = "Check the address: a node answers at http.node_address of its settings"


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response."""

    url: str
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """The JSON data of an answer, with its warnings and infos."""

    data: object
    warnings: tuple[str, ...]
    infos: tuple[str, ...] = ()


def parse_reply(reply: Reply) -> Envelope:
    """The content of a successful answer. Raises the error that `error_from` returns for any other."""
    content = _content(reply)
    if reply.status >= 300 or content is None or content.get("status") != "success":
        raise error_from(reply, content)
    return Envelope(content.get("data"), _texts(content.get("warnings")), _texts(content.get("infos")))


def error_from(reply: Reply, content: Mapping[str, object] | None) -> StrandlineError:
    """The error that an unsuccessful answer stands for."""
    if reply.status in (401, 403):
        return AccessDenied(f"{reply.url} requires a token: {_reason(reply, content)}", remedy=_ACCESS_REMEDY)
    kind = content.get("errorType") if content is not None and content.get("status") == "error" else "not_found"
    return _not_the_api(reply) if kind == "not_found" else _api_error(kind, f"the node at {reply.url}", reply, content)


def _api_error(kind: object, node: str, reply: Reply, content: Mapping[str, object] | None) -> StrandlineError:
    reason = _reason(reply, content)
    match kind:
        case "bad_data":
            return QuestionWrong(reason)
        case "unavailable":
            remedy = f"Wait for it; {reply.url}/-/ready shows its progress"
            return NodeNotReady(f"{node} can't answer yet: {reason}", remedy=remedy)
        case "timeout" | "canceled":
            return NodeBusy(f"{node} cancelled the query: {reason}")
        case _ if reply.status in _RETRYABLE_STATUSES:
            return NodeBusy(f"{node} can't answer now: {reason}")
        case _:
            return NodeRefused(f"{node} refused the query: {reason}")


def _not_the_api(reply: Reply) -> StrandlineError:
    if reply.status in _PROXY_STATUSES:
        return NodeUnreachable(
            f"{reply.url} answered {reply.status}, as proxies do when their server is down", remedy="Start the node"
        )
    kind = single_line(reply.content_type)[:100] or "no content type"
    return NotANode(
        f"{reply.url} answered {reply.status} with {kind}, which is not Prometheus' API", remedy=_ADDRESS_REMEDY
    )


def _content(reply: Reply) -> Mapping[str, object] | None:
    try:
        content = json.loads(reply.body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _reason(reply: Reply, content: Mapping[str, object] | None) -> str:
    error = content.get("error") if content is not None else None
    return single_line(str(error))[:_MAX_REASON_LENGTH] if error else f"status {reply.status}"


def _texts(found: object) -> tuple[str, ...]:
    return tuple(text for text in found if isinstance(text, str)) if isinstance(found, list) else ()

"""Prometheus' answers: what is in the envelope, and what an error in it means here."""

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
_ACCESS_REMEDY = "Name the file of the token for reading by --token-file, or in http.read_token_file of the settings"
_PROXY_STATUSES = (502, 503, 504)
_RETRYABLE_STATUSES = (429, *_PROXY_STATUSES)
_ADDRESS_REMEDY = "Check the address: a node answers at http.node_address of its settings"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server sent."""

    url: str
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """The data of an answer, as JSON has it, and what the node says of it."""

    data: object
    warnings: tuple[str, ...]
    infos: tuple[str, ...] = ()


def parse_reply(reply: Reply) -> Envelope:
    """The content of a good answer. Raises what a bad one means."""
    content = _content(reply)
    if reply.status >= 300 or content is None or content.get("status") != "success":
        raise error_from(reply, content)
    return Envelope(content.get("data"), _texts(content.get("warnings")), _texts(content.get("infos")))


def error_from(reply: Reply, content: Mapping[str, object] | None) -> StrandlineError:
    """The error that an answer stands for."""
    if reply.status in (401, 403):
        return AccessDenied(f"{reply.url} asks for a token: {_reason(reply, content)}", remedy=_ACCESS_REMEDY)
    kind = content.get("errorType") if content is not None and content.get("status") == "error" else "not_found"
    return _not_the_api(reply) if kind == "not_found" else _api_error(kind, f"the node at {reply.url}", reply, content)


def _api_error(kind: object, node: str, reply: Reply, content: Mapping[str, object] | None) -> StrandlineError:
    reason = _reason(reply, content)
    match kind:
        case "bad_data":
            return QuestionWrong(reason)
        case "unavailable":
            remedy = f"Wait for it; {reply.url}/-/ready says how far it is"
            return NodeNotReady(f"{node} can't answer yet: {reason}", remedy=remedy)
        case "timeout" | "canceled":
            return NodeBusy(f"{node} gave the question up: {reason}")
        case _ if reply.status in _RETRYABLE_STATUSES:
            return NodeBusy(f"{node} can't answer now: {reason}")
        case _:
            return NodeRefused(f"{node} refused: {reason}")


def _not_the_api(reply: Reply) -> StrandlineError:
    if reply.status in _PROXY_STATUSES:
        return NodeUnreachable(
            f"{reply.url} answered {reply.status}, as a proxy does whose server is away", remedy="Is the node running?"
        )
    kind = single_line(reply.content_type)[:100] or "no type"
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
    told = content.get("error") if content is not None else None
    return single_line(str(told))[:_MAX_REASON_LENGTH] if told else f"status {reply.status}"


def _texts(found: object) -> tuple[str, ...]:
    return tuple(text for text in found if isinstance(text, str)) if isinstance(found, list) else ()

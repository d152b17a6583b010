"""The messages between the front and the supervisor on the control socket, sent as frames.

| request of the front | with                                            | answer                                   |
| -------------------- | ----------------------------------------------- | ---------------------------------------- |
| `state`              | the versions of the state and settings it has   | `state`, as soon as there is a newer one |
| `restart`            | a shard's number                                | `done`: a new process is started soon    |
| `reload`             |                                                 | `reloaded`, with the changed settings    |

Any request may be answered with `error`.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from strandline.errors import Fatal, Retryable, StrandlineError
from strandline.node.query.frames import PREFIX, Message, decode, encode, lengths_of
from strandline.node.supervisor.reloading import Change, TakesEffect
from strandline.node.supervisor.supervisor import NoSuchShard

STATE, RESTART, RELOAD, DONE, RELOADED, ERROR = "state", "restart", "reload", "done", "reloaded", "error"


class RequestRefused(Fatal):
    """The supervisor refused a request of the front."""


class RequestFailed(Retryable):
    """A request of the front failed and may succeed later."""


async def read_message(reader: asyncio.StreamReader, max_bytes: int) -> Message:
    """The next message, whose parts have at most `max_bytes` each. Raises `FrameDamaged`, and `EOFError`
    (`IncompleteReadError`) or `OSError` if the peer has closed the connection.
    """
    header, body = lengths_of(await reader.readexactly(PREFIX.size), max_bytes)
    head = await reader.readexactly(header)
    return decode(head, bytearray(await reader.readexactly(body)))


async def write_message(writer: asyncio.StreamWriter, message: Message) -> None:
    """Send a message. Raises `OSError` if the peer has closed the connection."""
    writer.writelines(encode(message))
    await writer.drain()


async def close_connection(writer: asyncio.StreamWriter) -> None:
    """Close a connection and wait until it is closed."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def error_message(error: StrandlineError) -> Message:
    """The message for an error. `error_of` is its inverse."""
    kind = type(error).__name__ if isinstance(error, NoSuchShard) else ""
    # `str`, not `message`: for invalid settings, only the text lists what is wrong.
    return Message(ERROR, {"kind": kind, "text": str(error), "passing": isinstance(error, Retryable)})


def error_of(message: Message) -> StrandlineError:
    """The error in a message."""
    text = str(message.fields.get("text", ""))
    if message.fields.get("kind") == NoSuchShard.__name__:
        return NoSuchShard(text)
    return (RequestFailed if message.fields.get("passing") is True else RequestRefused)(text)


def reloaded_message(changes: Iterable[Change]) -> Message:
    """The message for the changes of a reload. `changes_of` is its inverse."""
    return Message(RELOADED, {"changes": [[change.name, change.takes_effect.value] for change in changes]})


def changes_of(message: Message) -> tuple[Change, ...]:
    """The changes in a message. Raises `ValueError` for any other message."""
    try:
        changes: list[Any] = message.fields["changes"]
        return tuple(Change(str(name), TakesEffect(effect)) for name, effect in changes)
    except (LookupError, TypeError) as error:
        raise ValueError(f"the message {message.kind!r} has no list of changed settings") from error

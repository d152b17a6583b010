"""What the front and the supervisor say to each other over the control socket. Messages travel as frames.

| the front asks | with                                          | the answer                               |
| -------------- | --------------------------------------------- | ---------------------------------------- |
| `state`        | the state and the settings that it has so far | `state`, as soon as there is a newer one |
| `restart`      | a shard's number                              | `done`: a new process is started soon    |
| `reload`       |                                               | `reloaded`, with what has changed        |

Any of them may be answered with `error`.
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
    """The supervisor refused what the front asked for."""


class RequestFailed(Retryable):
    """The supervisor could not do what the front asked for, and may later."""


async def read_message(reader: asyncio.StreamReader, most: int) -> Message:
    """The next message, whose parts have at most so many bytes. Raises `FrameDamaged`, and `EOFError`
    (`IncompleteReadError`) or `OSError` when the other side is gone.
    """
    header, body = lengths_of(await reader.readexactly(PREFIX.size), most)
    head = await reader.readexactly(header)
    return decode(head, bytearray(await reader.readexactly(body)))


async def write_message(writer: asyncio.StreamWriter, message: Message) -> None:
    """Send a message. Raises `OSError` when the other side is gone."""
    writer.writelines(encode(message))
    await writer.drain()


async def close_connection(writer: asyncio.StreamWriter) -> None:
    """Close a connection, and wait until it is closed."""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def error_message(error: StrandlineError) -> Message:
    """An error, for `error_of`."""
    kind = type(error).__name__ if isinstance(error, NoSuchShard) else ""
    # As a text: what is wrong with settings says more there than in its message.
    return Message(ERROR, {"kind": kind, "text": str(error), "passing": isinstance(error, Retryable)})


def error_of(message: Message) -> StrandlineError:
    """The error that a message tells of."""
    text = str(message.fields.get("text", ""))
    if message.fields.get("kind") == NoSuchShard.__name__:
        return NoSuchShard(text)
    return (RequestFailed if message.fields.get("passing") is True else RequestRefused)(text)


def reloaded_message(changes: Iterable[Change]) -> Message:
    """What a reload has changed, for `changes_of`."""
    return Message(RELOADED, {"changes": [[change.name, change.takes_effect.value] for change in changes]})


def changes_of(message: Message) -> tuple[Change, ...]:
    """The changes that a message tells of. Raises `ValueError` for what has none."""
    try:
        changes: list[Any] = message.fields["changes"]
        return tuple(Change(str(name), TakesEffect(effect)) for name, effect in changes)
    except (LookupError, TypeError) as error:
        raise ValueError(f"{message.kind!r} does not say what has changed") from error

"""What a node takes over from new settings while it runs, and what has to wait for a restart. Pure.

Tokens are taken over, and so are the log's level, all of `[node]` and all of `[query]`. A shard's process reads the
settings file when it starts, so what belongs to shards counts from a shard's next start on. The addresses, TLS and the
rest of `[http]` belong to the listening socket and need a restart of the node. `[gateway]` and `[stack]` are others'.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from strandline.node.settings.sections import Settings


class TakesEffect(StrEnum):
    """When a changed setting counts."""

    AT_ONCE = "at once"
    WITH_SHARD = "when shards are started again"
    WITH_NODE = "when the node is started again"
    ELSEWHERE = "not in this process"


_TOKENS = ("read_token_file", "write_token_file", "admin_token_file")
_AT_ONCE = {"node": None, "query": None, "log": ("level",), "http": _TOKENS}
"""By section the settings that are taken over; None for all of them."""
_WITH_NODE = ("http", "log")
_ELSEWHERE = ("gateway", "stack")


@dataclass(frozen=True, slots=True)
class Change:
    """A setting with another value than before, and when that counts."""

    name: str
    takes_effect: TakesEffect


@dataclass(frozen=True, slots=True)
class Reload:
    """The outcome: the settings that are in force now, and what was changed."""

    settings: Settings
    changes: tuple[Change, ...] = ()

    def names(self, takes_effect: TakesEffect) -> tuple[str, ...]:
        """The settings whose change counts then."""
        return tuple(change.name for change in self.changes if change.takes_effect is takes_effect)


def reloaded(running: Settings, read: Settings) -> Reload:
    """What becomes of the settings that a node runs with, once others have been read."""
    changes = tuple(_changes(running, read))
    sections = {}
    for section, names in _AT_ONCE.items():
        was, now = getattr(running, section), getattr(read, section)
        taken = type(now).model_fields if names is None else names
        sections[section] = was.model_copy(update={name: getattr(now, name) for name in taken})
    if next(sections["http"].findings(), None) is not None:
        # The tokens don't fit the address that is still listened on: it would stand open.
        sections["http"] = running.http
        changes = tuple(_delayed(change) for change in changes)
    return Reload(running.model_copy(update=sections), changes)


def _changes(running: Settings, read: Settings) -> Iterator[Change]:
    for section in type(read).model_fields:
        was, now = getattr(running, section), getattr(read, section)
        for name in type(now).model_fields:
            if getattr(was, name) != getattr(now, name):
                yield Change(f"{section}.{name}", _takes_effect(section, name))


def _takes_effect(section: str, name: str) -> TakesEffect:
    taken = _AT_ONCE.get(section, ())
    if taken is None or name in taken:
        return TakesEffect.AT_ONCE
    if section in _WITH_NODE:
        return TakesEffect.WITH_NODE
    return TakesEffect.ELSEWHERE if section in _ELSEWHERE else TakesEffect.WITH_SHARD


def _delayed(change: Change) -> Change:
    tokens = tuple(f"http.{name}" for name in _TOKENS)
    return Change(change.name, TakesEffect.WITH_NODE) if change.name in tokens else change

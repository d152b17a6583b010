"""What a node takes over from new settings while it runs, and what has to wait for a restart. Pure.

Tokens are taken over, and so are the log's level, all of `[node]`, all of `[query]` but what shards keep, and another
certificate where TLS is spoken already. A shard's process reads the settings file when it starts, so what belongs to
shards counts from a shard's next start on. The addresses, whether TLS is spoken, and the rest of `[http]` belong to the
listening socket and need a restart of the node. `[gateway]` and `[stack]` are others'.
"""

from collections.abc import Collection, Iterator, Mapping
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
_TLS = ("tls_certificate_file", "tls_key_file", "tls_key_password_file")
_OF_SHARDS = ("result_cache",)
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
    at_once = _at_once(running, read)
    changes = tuple(_changes(running, read, at_once))
    sections = {}
    for section, names in at_once.items():
        was, now = getattr(running, section), getattr(read, section)
        sections[section] = was.model_copy(update={name: getattr(now, name) for name in names})
    if next(sections["http"].findings(), None) is not None:
        # The tokens don't fit the address that is still listened on: it would stand open.
        sections["http"] = running.http
        changes = tuple(_delayed(change, tuple(f"http.{name}" for name in (*_TOKENS, *_TLS))) for change in changes)
    if next(running.model_copy(update=sections).findings(), None) is not None:
        # Shards wait for as long as before until they are started again, and must not be killed for it.
        sections["node"] = sections["node"].model_copy(update={"hang_after": running.node.hang_after})
        changes = tuple(_delayed(change, ("node.hang_after",)) for change in changes)
    return Reload(running.model_copy(update=sections), changes)


def _at_once(running: Settings, read: Settings) -> Mapping[str, Collection[str]]:
    """By section the settings that are taken over."""
    speaks_tls = all(one.http.tls_certificate_file is not None for one in (running, read))
    return {
        "node": type(read.node).model_fields,
        "query": [name for name in type(read.query).model_fields if name not in _OF_SHARDS],
        "log": ("level",),
        "http": (*_TOKENS, *_TLS) if speaks_tls else _TOKENS,
    }


def _changes(running: Settings, read: Settings, at_once: Mapping[str, Collection[str]]) -> Iterator[Change]:
    for section in type(read).model_fields:
        was, now = getattr(running, section), getattr(read, section)
        for name in type(now).model_fields:
            if getattr(was, name) != getattr(now, name):
                is_taken = name in at_once.get(section, ())
                yield Change(f"{section}.{name}", TakesEffect.AT_ONCE if is_taken else _takes_effect(section))


def _takes_effect(section: str) -> TakesEffect:
    """When settings of a section count that are not taken over."""
    if section in _WITH_NODE:
        return TakesEffect.WITH_NODE
    return TakesEffect.ELSEWHERE if section in _ELSEWHERE else TakesEffect.WITH_SHARD


def _delayed(change: Change, kept: Collection[str]) -> Change:
    return Change(change.name, TakesEffect.WITH_NODE) if change.name in kept else change

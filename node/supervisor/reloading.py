"""Which changed settings a running node applies, and which need a restart. Pure.

- Applied at once: tokens, the log's level, all of `[node]`, all of `[query]` except what shards keep, and another
  certificate if TLS is already used.
- Applied when a shard starts: what belongs to shards, since a shard's process reads the settings file at its start.
- Applied when the node starts: the addresses, whether TLS is used, and the rest of `[http]`, which belong to the
  listening socket.
- Not used by the node: `[gateway]` and `[stack]`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from strandline.node.settings.sections import Settings


class TakesEffect(StrEnum):
    """When a changed setting takes effect."""

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
    """A changed setting, and when the change takes effect."""

    name: str
    takes_effect: TakesEffect


@dataclass(frozen=True, slots=True)
class Reload:
    """The outcome of a reload: the settings in force, and the changes."""

    settings: Settings
    changes: tuple[Change, ...] = ()

    def names(self, takes_effect: TakesEffect) -> tuple[str, ...]:
        """The settings whose change takes effect then."""
        return tuple(change.name for change in self.changes if change.takes_effect is takes_effect)


def reloaded(running: Settings, read: Settings) -> Reload:
    """Apply the settings that were read to those that a node is running with."""
    at_once = _at_once(running, read)
    changes = tuple(_changes(running, read, at_once))
    sections = {}
    for section, names in at_once.items():
        was, now = getattr(running, section), getattr(read, section)
        sections[section] = was.model_copy(update={name: getattr(now, name) for name in names})
    if next(sections["http"].findings(), None) is not None:
        # The new tokens are invalid for the address that the node still listens on, which would be left unprotected.
        sections["http"] = running.http
        changes = tuple(_delayed(change, tuple(f"http.{name}" for name in (*_TOKENS, *_TLS))) for change in changes)
    if next(running.model_copy(update=sections).findings(), None) is not None:
        # Until they are restarted, shards use the old timeouts, and must not be killed for waiting that long.
        sections["node"] = sections["node"].model_copy(update={"hang_after": running.node.hang_after})
        changes = tuple(_delayed(change, ("node.hang_after",)) for change in changes)
    return Reload(running.model_copy(update=sections), changes)


def _at_once(running: Settings, read: Settings) -> Mapping[str, Collection[str]]:
    """By section, the settings that are applied at once."""
    uses_tls = all(one.http.tls_certificate_file is not None for one in (running, read))
    return {
        "node": type(read.node).model_fields,
        "query": [name for name in type(read.query).model_fields if name not in _OF_SHARDS],
        "log": ("level",),
        "http": (*_TOKENS, *_TLS) if uses_tls else _TOKENS,
    }


def _changes(running: Settings, read: Settings, at_once: Mapping[str, Collection[str]]) -> Iterator[Change]:
    for section in type(read).model_fields:
        was, now = getattr(running, section), getattr(read, section)
        for name in type(now).model_fields:
            if getattr(was, name) != getattr(now, name):
                is_taken = name in at_once.get(section, ())
                yield Change(f"{section}.{name}", TakesEffect.AT_ONCE if is_taken else _takes_effect(section))


def _takes_effect(section: str) -> TakesEffect:
    """When settings of a section take effect that are not applied at once."""
    if section in _WITH_NODE:
        return TakesEffect.WITH_NODE
    return TakesEffect.ELSEWHERE if section in _ELSEWHERE else TakesEffect.WITH_SHARD


def _delayed(change: Change, kept: Collection[str]) -> Change:
    return Change(change.name, TakesEffect.WITH_NODE) if change.name in kept else change

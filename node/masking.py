"""Keeping secrets out of everything that is written.

A secret may reach a log line in ways that nobody planned: in a driver's exception, in the repr of some object, escaped
because it stood in a JSON text. So each one is registered here when it is read, and whatever is about to be written is
searched for it in every spelling that it is likely to have.
"""

import json
import re
import threading
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

HIDDEN = "(hidden)"

# Passwords that are no secret to anybody and are everyday words here: Cassandra's own default, and what people put into
# a trial set-up. To hide them would only make what is written unreadable.
_NO_SECRETS = frozenset({"cassandra", "kafka", "strandline"})

# The shortest line of a secret with several lines (a private key) that is masked on its own.
_MIN_LINE = 8


class SecretMask:
    """Replaces every registered secret by `(hidden)`. Knows nothing until told; may be told more at any time, by any
    thread.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = threading.Lock()
        self.add(secrets)

    def __repr__(self) -> str:
        return f"SecretMask({len(self._spellings)} spellings)"

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these from now on, too. An empty secret is none, nor is one of the few that everybody knows."""
        with self._lock:
            for secret in secrets:
                if secret not in _NO_SECRETS:
                    self._spellings.update(_spellings(secret))
            if self._spellings:
                # Longest first, so that a secret which begins with another is not left half shown.
                ordered = sorted(self._spellings, key=lambda spelling: (-len(spelling), spelling))
                self._pattern = re.compile("|".join(re.escape(spelling) for spelling in ordered))

    def text(self, text: str) -> str:
        """`text` with every secret in it hidden."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def value(self, value: object) -> object:
        """A value as `plain` gives it, with every secret in it hidden: in keys, in numbers, at any depth."""
        if self._pattern is None:
            return value
        shown: object
        match value:
            case str():
                shown = self.text(value)
            case None | bool():
                shown = value
            case int() | float():
                # A password of digits may well have been read as a number.
                shown = value if self._pattern.search(str(value)) is None else self.text(str(value))
            case Mapping():
                shown = {self.text(str(key)): self.value(item) for key, item in value.items()}
            case list() | tuple():
                shown = [self.value(item) for item in value]
            case _:
                shown = self.text(repr(value))
        return shown


def _spellings(secret: str) -> set[str]:
    """The secret as it is, and as repr, JSON, a Java string or a URL would write it."""
    spellings = set()
    for part in {secret, secret.strip(), *_long_lines(secret)}:
        escaped = part.replace("\\", "\\\\")
        spellings |= {
            part,
            repr(part)[1:-1],
            ascii(part)[1:-1],
            json.dumps(part)[1:-1],
            json.dumps(part, ensure_ascii=False)[1:-1],
            escaped,
            escaped.replace('"', '\\"'),
            escaped.replace("'", "\\'"),
            quote(part),
            quote(part, safe=""),
            quote_plus(part),
        }
    return spellings - {""}


def _long_lines(secret: str) -> list[str]:
    """A secret of several lines is rarely shown whole; each of its lines is as secret, but for a PEM's frame."""
    lines = secret.splitlines()
    return [line for line in lines if len(line) >= _MIN_LINE and "-----" not in line] if len(lines) > 1 else []

"""Masks secrets in everything that is written.

A secret may reach a log line unexpectedly: in a driver's exception, in the repr of an object, or escaped in a JSON
text. So each secret is registered here when it is read, and everything that is written is searched for it in its likely
spellings.
"""

import json
import re
import threading
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

HIDDEN = "(hidden)"

# Default and trial passwords that are common words here. Masking them would make the output unreadable.
_NO_SECRETS = frozenset({"cassandra", "kafka", "strandline"})

# The minimum length of a line of a multi-line secret (a private key) that is masked on its own.
_MIN_LINE = 8


class SecretMask:
    """Replaces every registered secret with `(hidden)`. Thread-safe. Secrets may be added at any time."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._spellings: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = threading.Lock()
        self.add(secrets)

    def __repr__(self) -> str:
        return f"SecretMask({len(self._spellings)} spellings)"

    def add(self, secrets: Iterable[str]) -> None:
        """Mask these from now on, too, except empty ones and those in `_NO_SECRETS`."""
        with self._lock:
            for secret in secrets:
                if secret not in _NO_SECRETS:
                    self._spellings.update(_spellings(secret))
            if self._spellings:
                # Longest first, so that a secret that begins with another one is masked completely.
                ordered = sorted(self._spellings, key=lambda spelling: (-len(spelling), spelling))
                self._pattern = re.compile("|".join(re.escape(spelling) for spelling in ordered))

    def text(self, text: str) -> str:
        """`text` with every secret masked."""
        return text if self._pattern is None else self._pattern.sub(HIDDEN, text)

    def value(self, value: object) -> object:
        """A value of `json_value` with every secret masked: in keys and numbers, at any depth."""
        if self._pattern is None:
            return value
        shown: object
        match value:
            case str():
                shown = self.text(value)
            case None | bool():
                shown = value
            case int() | float():
                # A password of digits may have been read as a number.
                shown = value if self._pattern.search(str(value)) is None else self.text(str(value))
            case Mapping():
                shown = {self.text(str(key)): self.value(item) for key, item in value.items()}
            case list() | tuple():
                shown = [self.value(item) for item in value]
            case _:
                shown = self.text(repr(value))
        return shown


def _spellings(secret: str) -> set[str]:
    """The secret as it is, and as repr, JSON, a Java string or a URL writes it."""
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
    """The lines of a multi-line secret, which may be shown separately, without the first and last line of a PEM."""
    lines = secret.splitlines()
    return [line for line in lines if len(line) >= _MIN_LINE and "-----" not in line] if len(lines) > 1 else []

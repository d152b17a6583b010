"""Finds the line of each key in a TOML text.

Python's TOML parser returns values without their positions, so this module scans the text again. It relies on the text
being valid TOML, and does not report errors.
"""

import re
import tomllib
from collections.abc import Callable

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
# The longer delimiters come first. A multi-line string may end with two quotes of its own before the delimiter.
_STRING = re.compile(
    r"""
    \"{3} (?: \\. | [^\\] )*? \"{3,5}
    | '{3} .*? '{3,5}
    | \" (?: \\. | [^"\\] )* \"
    | ' [^']* '
    """,
    re.DOTALL | re.VERBOSE,
)
_NAME = re.compile(rf"{_STRING.pattern} | [A-Za-z0-9_-]+", re.DOTALL | re.VERBOSE)
_OTHER_VALUE = re.compile(r"[^,\]}#\r\n]*")

Path = tuple[str, ...]


def key_lines(text: str) -> dict[str, int]:
    """The first line, counted from 1, that has each key or table, by the full dotted name."""
    scanner = _KeyScanner(text)
    scanner.document()
    return scanner.lines


class _KeyScanner:
    """One pass over the text. Each method begins at `self._at`, and moves it behind what it has read."""

    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._text = text
        self._at = 0

    def document(self) -> None:
        table: Path = ()
        self._take(_BLANK)
        while self._at < len(self._text):
            if self._next("["):
                table = self._header()
            else:
                self._pair(table)
            self._take(_BLANK)

    def _header(self) -> Path:
        """`[table]` or `[[table]]`."""
        brackets = 2 if self._next("[[") else 1
        self._at += brackets
        table = self._key(())
        self._at += brackets
        return table

    def _pair(self, table: Path) -> None:
        """`key = value`."""
        path = self._key(table)
        self._at += len("=")
        self._take(_SPACE)
        self._value(path)

    def _key(self, table: Path) -> Path:
        """One name, or several separated by dots. Their line is recorded."""
        line, path = self._text.count("\n", 0, self._at) + 1, table
        while True:
            self._take(_SPACE)
            path = (*path, _unquoted(self._take(_NAME)))
            # `a.b = 1` also counts as the line of a, if it is the first one with a.
            self.lines.setdefault(".".join(path), line)
            self._take(_SPACE)
            if not self._next("."):
                return path
            self._at += len(".")

    def _value(self, path: Path) -> None:
        if self._next("["):
            self._items("]", lambda: self._value(path))
        elif self._next("{"):
            self._items("}", lambda: self._pair(path))
        elif self._next('"') or self._next("'"):
            self._take(_STRING)
        else:
            self._take(_OTHER_VALUE)

    def _items(self, end: str, item: Callable[[], None]) -> None:
        """Items separated by commas, in brackets or braces."""
        self._at += len("[")
        self._take(_BLANK)
        while not self._next(end):
            item()
            self._take(_BLANK)
            if self._next(","):
                self._at += len(",")
                self._take(_BLANK)
        self._at += len(end)

    def _next(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            # This does not happen for valid TOML. Raising prevents an infinite loop.
            raise ValueError(f"not TOML at character {self._at}")
        self._at = found.end()
        return found.group()


def _unquoted(name: str) -> str:
    """The name of a bare or quoted key. Escapes are decoded by the TOML parser."""
    return name if name[0] not in "\"'" else next(iter(tomllib.loads(f"{name} = 0")))

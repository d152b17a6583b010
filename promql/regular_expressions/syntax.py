"""Parses an expression in Go's syntax (RE2 with Perl's classes and flags) into a tree."""

import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from strandline.errors import ExitCode, Fatal
from strandline.promql.regular_expressions.characters import (
    ANY,
    DIGITS,
    LAST,
    LINE_FEED,
    POSIX,
    SPACE,
    WORD,
    Ranges,
    category,
    in_any_case,
    joined,
    negated,
)
from strandline.promql.regular_expressions.scripts import script

_MAX_REPEATS: Final = 1000
# Go's limit is 1000. Functions over trees are recursive, and Python limits recursion.
_MAX_DEPTH: Final = 100
_FLAG_SYNTAX: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED: Final = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_POSIX: Final = re.compile(r"\[:(\^?)([a-z]+):\]")
_UNICODE: Final = re.compile(r"\\([pP])(?:\{(\^?)([^}]*)\}|(.))", re.DOTALL)
_NUMBER: Final = re.compile(r"\\(?:(0[0-7]{0,2}|[1-7][0-7]{1,2})|x\{([0-9A-Fa-f]+)\}|x([0-9A-Fa-f]{2}))")
_CONTROLS: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_CLASSES: Final = {"d": DIGITS, "s": SPACE, "w": WORD}


class InvalidRegularExpression(Fatal):
    """The expression is invalid in Go, or uses an unsupported feature."""

    exit_code = ExitCode.USAGE


class Assertion(Enum):
    """Zero-width assertions: conditions on a position between characters."""

    TEXT_START = 0
    TEXT_END = 1
    LINE_START = 2
    LINE_END = 3
    WORD_BOUNDARY = 4
    NOT_WORD_BOUNDARY = 5


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other. Without parts, it matches the empty text."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Alternatives, of which the first that leads to a match has priority."""

    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """From `minimum` to `maximum` times (None: unlimited), as often as possible if `is_greedy`, else as rarely."""

    inner: "Node"
    minimum: int
    maximum: int | None
    is_greedy: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group, numbered from 1."""

    inner: "Node"
    number: int


Node = Characters | Assertion | Sequence | Alternatives | Repetition | Group


@dataclass(frozen=True, slots=True)
class Tree:
    """A parsed expression. `names` are the names of the groups, starting with the full match; empty for those without a
    name. Several groups may have the same name.
    """

    root: Node
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Flags:
    ignores_case: bool = False
    is_multiline: bool = False
    dot_matches_newline: bool = False
    is_lazy: bool = False


@dataclass(slots=True)
class _OpenGroup:
    """A group that is still open."""

    outer: _Flags
    number: int
    """0 if the group does not capture."""
    options: list[Node] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)


def parse(expression: str) -> Tree:
    """Parse an expression. Raises `InvalidRegularExpression`."""
    return _Parser(expression).read()


class _Parser:
    def __init__(self, expression: str) -> None:
        self._text = expression
        self._at = 0
        self._flags = _Flags()
        self._names = [""]
        self._open = [_OpenGroup(self._flags, 0)]
        self._is_after_repeat = False

    def read(self) -> Tree:
        while self._at < len(self._text):
            was_after_repeat, self._is_after_repeat = self._is_after_repeat, False
            character = self._text[self._at]
            if character in "*+?{" and (bounds := self._take_bounds()) is not None:
                self._repeat(*bounds, is_after_repeat=was_after_repeat)
            elif character == "(":
                self._open_group()
            elif character == ")":
                self._close_group()
            elif character == "|":
                self._end_option()
                self._at += 1
            else:
                self._open[-1].parts += self._take_atoms(character)
        if len(self._open) > 1:
            raise self._error("missing closing )")
        return Tree(self._end(self._open.pop()), tuple(self._names))

    def _error(self, what: str) -> InvalidRegularExpression:
        return InvalidRegularExpression(f"{what} at character {self._at + 1} of {self._text!r}")

    # Repetitions and groups

    def _take_bounds(self) -> tuple[int, int | None] | None:
        """Take a repetition. None for a brace that is a literal character."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._text[self._at])
        if simple is not None:
            self._at += 1
            return simple
        counted = _REPEAT.match(self._text, self._at)
        if counted is None:
            return None
        # The lengths are checked first: Python refuses to parse numbers with thousands of digits.
        if max(len(counted[1]), len(counted[3] or "")) > 4:
            raise self._error("invalid repeat count")
        minimum = int(counted[1])
        maximum = minimum if counted[2] is None else None if counted[3] is None else int(counted[3])
        if minimum > _MAX_REPEATS or (maximum is not None and not minimum <= maximum <= _MAX_REPEATS):
            raise self._error("invalid repeat count")
        self._at = counted.end()
        return minimum, maximum

    def _repeat(self, minimum: int, maximum: int | None, *, is_after_repeat: bool) -> None:
        is_lazy = self._text.startswith("?", self._at)
        self._at += is_lazy
        parts = self._open[-1].parts
        if is_after_repeat:
            raise self._error("invalid nested repetition operator")
        if not parts:
            raise self._error("missing argument to repetition operator")
        repeated = Repetition(parts[-1], minimum, maximum, is_lazy == self._flags.is_lazy)
        if _repeats(repeated) > _MAX_REPEATS:
            raise self._error("invalid repeat count")
        parts[-1] = repeated
        self._is_after_repeat = True

    def _open_group(self) -> None:
        if len(self._open) > _MAX_DEPTH:
            raise self._error(f"groups more than {_MAX_DEPTH} deep")
        outer, number = self._flags, 0
        flags = _FLAG_SYNTAX.match(self._text, self._at)
        if flags is not None:
            self._set_flags(flags[1], flags[2] or "")
            self._at = flags.end()
            if flags[3] == ")":
                # Flags without a group apply until the end of the enclosing group.
                return
        elif self._text.startswith("(?", self._at):
            named = _NAMED.match(self._text, self._at)
            if named is None:
                raise self._error("invalid named capture or group syntax")
            number = self._number_group(named[1])
            self._at = named.end()
        else:
            number = self._number_group("")
            self._at += 1
        self._open.append(_OpenGroup(outer, number))

    def _number_group(self, name: str) -> int:
        self._names.append(name)
        return len(self._names) - 1

    def _set_flags(self, on: str, off: str) -> None:
        names = {"i": "ignores_case", "m": "is_multiline", "s": "dot_matches_newline", "U": "is_lazy"}
        changes = {**{names[letter]: True for letter in on}, **{names[letter]: False for letter in off}}
        self._flags = replace(self._flags, **changes)

    def _close_group(self) -> None:
        if len(self._open) == 1:
            raise self._error("unexpected )")
        closed = self._open.pop()
        inner = self._end(closed)
        self._flags = closed.outer
        self._open[-1].parts.append(Group(inner, closed.number) if closed.number else inner)
        self._at += 1

    def _end_option(self) -> None:
        group = self._open[-1]
        group.options.append(_sequence(group.parts))
        group.parts = []

    def _end(self, group: _OpenGroup) -> Node:
        options = (*group.options, _sequence(group.parts))
        return options[0] if len(options) == 1 else Alternatives(options)

    # Characters and assertions

    def _take_atoms(self, character: str) -> list[Node]:
        if character == "\\":
            return self._take_escape()
        if character == "[":
            return [Characters(self._take_class())]
        self._at += 1
        if character == ".":
            return [Characters(ANY if self._flags.dot_matches_newline else negated(LINE_FEED))]
        if character == "^":
            return [Assertion.LINE_START if self._flags.is_multiline else Assertion.TEXT_START]
        if character == "$":
            return [Assertion.LINE_END if self._flags.is_multiline else Assertion.TEXT_END]
        return [self._literal(ord(character))]

    def _literal(self, code: int) -> Characters:
        return Characters(self._cased(((code, code),)))

    def _cased(self, ranges: Ranges) -> Ranges:
        return in_any_case(ranges) if self._flags.ignores_case else ranges

    def _take_escape(self) -> list[Node]:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter == "Q":
            quoted, mark, _ = self._text[self._at + 2 :].partition("\\E")
            self._at += 2 + len(quoted) + len(mark)
            return [self._literal(ord(character)) for character in quoted]
        assertions = {
            "A": Assertion.TEXT_START,
            "z": Assertion.TEXT_END,
            "b": Assertion.WORD_BOUNDARY,
            "B": Assertion.NOT_WORD_BOUNDARY,
        }
        if letter in assertions:
            self._at += 2
            return [assertions[letter]]
        ranges = self._take_named_class()
        return [Characters(ranges)] if ranges is not None else [self._literal(self._take_escaped_code())]

    def _take_named_class(self) -> Ranges | None:
        r"""Take a class such as \d, \pL or [:alpha:]; None if there is none at this position."""
        letter = self._text[self._at + 1 : self._at + 2]
        if self._text.startswith("\\", self._at) and letter.lower() in _CLASSES and letter:
            self._at += 2
            return self._named(_CLASSES[letter.lower()], is_negated=letter.isupper())
        posix = _POSIX.match(self._text, self._at)
        if posix is not None:
            if posix[2] not in POSIX:
                raise self._error("invalid character class range")
            self._at = posix.end()
            return self._named(POSIX[posix[2]], is_negated=bool(posix[1]))
        unicode = _UNICODE.match(self._text, self._at)
        if unicode is None:
            return None
        name = unicode[3] if unicode[4] is None else unicode[4]
        ranges = category(name) or script(name)
        if ranges is None:
            raise self._error(f"unknown Unicode category or script {name!r}")
        self._at = unicode.end()
        return self._named(ranges, is_negated=(unicode[1] == "P") != bool(unicode[2]))

    def _named(self, ranges: Ranges, *, is_negated: bool) -> Ranges:
        cased = self._cased(ranges)
        return negated(cased) if is_negated else cased

    def _take_escaped_code(self) -> int:
        letter = self._text[self._at + 1 : self._at + 2]
        number = _NUMBER.match(self._text, self._at)
        if number is not None:
            octal, hexadecimal = number[1], (number[2] or number[3] or "0")[-8:]
            code, end = int(hexadecimal, 16) if octal is None else int(octal, 8), number.end()
            if (number[2] or "").strip("0")[8:] or code > LAST:
                raise self._error("invalid escape sequence")
        elif letter in _CONTROLS:
            code, end = _CONTROLS[letter], self._at + 2
        elif letter.isascii() and letter and not letter.isalnum():
            code, end = ord(letter), self._at + 2
        else:
            raise self._error("invalid escape sequence")
        self._at = end
        return code

    def _take_class(self) -> Ranges:
        opened = self._at
        self._at += 1
        is_negated = self._text.startswith("^", self._at)
        self._at += is_negated
        first = self._at
        members: list[tuple[int, int]] = []
        # A ] in the first position is a member.
        while self._at == first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                self._at = opened
                raise self._error("missing closing ]")
            named = self._take_named_class()
            members += self._cased((self._take_range(),)) if named is None else named
        self._at += 1
        ranges = joined(members)
        return negated(ranges) if is_negated else ranges

    def _take_range(self) -> tuple[int, int]:
        low = self._take_member()
        if not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
            return low, low
        if self._at + 1 >= len(self._text):
            raise self._error("missing closing ]")
        self._at += 1
        high = self._take_member()
        if high < low:
            raise self._error("invalid character class range")
        return low, high

    def _take_member(self) -> int:
        character = self._text[self._at]
        if character == "\\":
            return self._take_escaped_code()
        self._at += 1
        return ord(character)


def _sequence(parts: list[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _repeats(node: Node) -> int:
    """The maximum number of copies that nested counted repetitions make of a part."""
    match node:
        case Repetition(inner, minimum, maximum):
            return max(1, minimum if maximum is None else maximum) * _repeats(inner)
        case Sequence(parts):
            return max(map(_repeats, parts), default=1)
        case Alternatives(options):
            return max(map(_repeats, options))
        case Group(inner):
            return _repeats(inner)
        case _:
            return 1

"""Analyses RE2 expressions over label values: a list of values, a list of prefixes, or a general expression.

Most expressions in dashboards are lists (`a|b`) or prefixes (`web-.*`), which an index answers without matching. An
expression is read as in RE2, anchored at both ends, with a dot that matches a line feed. Whatever is not clearly a list
or a prefix stays an expression, of which two properties are still known: a prefix of all its matches, and whether it
matches the empty text.

Expressions are untrusted, so reading one uses no deep recursion, and its expansion is bounded.
"""

import re
from dataclasses import dataclass, field

from strandline.errors import ExitCode, Fatal
from strandline.index.expression_parts import (
    ANY_CHARACTER,
    AT_END,
    AT_START,
    Part,
    Tail,
    alternatives,
    one_of,
    opaque,
    repetition,
    sequence,
    text,
)

# Each prefix is a separate query, of which Lucene allows at most a thousand. With more prefixes, it stays an
# expression.
_MAX_PREFIXES = 64
# In characters. Lucene compiles a prefix into an automaton, and fails at a thousand bytes.
_MAX_PREFIX_CHARACTERS = 200
# RE2's own limits.
_MAX_REPEATS = 1000
_MAX_DEPTH = 1000
_MAX_CLASS = 256
# A step takes at most ten microseconds, so reading takes little more than a second.
_MAX_STEPS = 100_000
# The total size of all intermediate lists, in characters and entries.
_MAX_EXPANSION = 1 << 20

_LITERAL_TEXT = re.compile(r"(?:[^\\.+*?()|\[{^$]|\\[!-/:-@\[-`{-~])+")
_ESCAPED_SIGN = re.compile(r"\\(.)")
_LITERAL_LIST = re.compile(r"[^\\.+*?()\[{^$]*")
_REPEAT = re.compile(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<\w+>", re.ASCII)
_ESCAPED_CLASS = re.compile(r"\\(?:[dDsSwW]|[pP](?:\{[^}]*\}|[^{]))", re.DOTALL)
_NUMBER = re.compile(r"\\(?:([1-7][0-7]{1,2}|0[0-7]{0,2})|x\{0*([0-9A-Fa-f]{1,6})\}|x([0-9A-Fa-f]{2}))")
_REPEATS = frozenset("*+?{(\\")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DIGITS = frozenset("0123456789")


class InvalidExpression(Fatal):
    """Not an RE2 expression. `position` is the index of the character at which reading stopped."""

    exit_code = ExitCode.USAGE

    def __init__(self, fault: str, position: int) -> None:
        super().__init__(f"{fault} at character {position + 1}", remedy="Expressions have RE2's syntax")
        self.position = position


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Matches these values, texts that start with one of the prefixes, and texts that continue after one of
    `longer_than`.
    """

    values: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    longer_than: frozenset[str] = frozenset()

    @property
    def matches_empty(self) -> bool:
        """Whether the empty text matches."""
        return "" in self.values or "" in self.prefixes

    @property
    def matches_all_but_empty(self) -> bool:
        """Whether every non-empty text matches, as with `.*` and `.+`."""
        return "" in self.prefixes or "" in self.longer_than


@dataclass(frozen=True, slots=True)
class General:
    """An expression that has to be matched. Every match starts with `prefix`, which may be empty."""

    prefix: str
    matches_empty: bool


Shape = Alternatives | General


def literal_list(expression: str) -> list[str] | None:
    """Return the values, possibly repeated, of an expression that is obviously a list of them: `a|b|c`."""
    return expression.split("|") if _LITERAL_LIST.fullmatch(expression) else None


def analyse(expression: str) -> Shape:
    """Analyse an expression; raise `InvalidExpression` if it can't be read.

    Alternatives are exact, and were completely validated. A `General` one may still be invalid when it is compiled:
    names of classes are not checked here.
    """
    if (values := literal_list(expression)) is not None:
        return Alternatives(frozenset(values))
    part = _Reader(expression).read()
    general = General(part.prefix, part.matches_empty)
    if part.language is None:
        return general
    kinds: dict[Tail, set[str]] = {tail: set() for tail in Tail}
    for start, tail in part.language:
        kinds[tail].add(start)
    prefixes = [*kinds[Tail.ANYTHING], *kinds[Tail.SOMETHING]]
    if len(prefixes) > _MAX_PREFIXES or max(map(len, prefixes), default=0) > _MAX_PREFIX_CHARACTERS:
        return general
    return Alternatives(
        frozenset(kinds[Tail.NOTHING]), frozenset(kinds[Tail.ANYTHING]), frozenset(kinds[Tail.SOMETHING])
    )


@dataclass(frozen=True, slots=True)
class _Flags:
    ignore_case: bool = False
    dot_matches_line_feed: bool = True


@dataclass(slots=True)
class _Group:
    """An open group: the completed alternatives, the parts of the current one, and the flags outside."""

    opened_at: int
    outer_flags: _Flags
    named: bool = False
    done: list[Part] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)


class _Reader:
    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._position = 0
        self._flags = _Flags()
        self._groups = [_Group(-1, self._flags)]
        self._room = _MAX_EXPANSION
        self._steps = 0
        self._last_inner_end = expression.rfind(":]")

    def read(self) -> Part:
        after_repeat = False
        while self._position < len(self._expression):
            self._count_step()
            character = self._expression[self._position]
            if character in "*+?{" and (bounds := self._take_repeat()) is not None:
                self._repeat(*bounds, after_repeat=after_repeat)
                after_repeat = True
                continue
            after_repeat = False
            if character == "(":
                self._open_group()
            elif character == ")":
                self._close_group()
            elif character == "|":
                self._end_alternative()
                self._position += 1
            else:
                self._groups[-1].parts += self._take_parts(character)
        if len(self._groups) > 1:
            raise InvalidExpression("a group without its )", self._groups[-1].opened_at)
        return self._end_group()

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise InvalidExpression(f"more than {_MAX_STEPS} parts", self._position)

    def _take_parts(self, character: str) -> list[Part]:
        """Read what stands for characters or positions, and return its parts: none for an empty quotation."""
        plain = _LITERAL_TEXT.match(self._expression, self._position)
        if plain is not None:
            self._position = plain.end()
            return self._text(_ESCAPED_SIGN.sub(r"\1", plain.group()))
        if character == "\\":
            return self._take_escape()
        if character == "[":
            return [self._take_class()]
        if character == ".":
            self._position += 1
            return [ANY_CHARACTER if self._flags.dot_matches_line_feed else opaque()]
        if character in "^$":
            self._position += 1
            return [AT_START if character == "^" else AT_END]
        # A brace that starts no repetition is text.
        self._position += 1
        return self._text(character)

    def _text(self, characters: str) -> list[Part]:
        """Return the parts of plain text that ends here; the last character is separate if a repetition may follow."""
        apart = len(characters) - 1 if self._expression[self._position : self._position + 1] in _REPEATS else 0
        pieces = [piece for piece in (characters[:apart], characters[apart:]) if piece]
        return [opaque() if self._flags.ignore_case else text(piece) for piece in pieces]

    def _take_repeat(self) -> tuple[int, int | None] | None:
        """Read a repetition, greedy or lazy, and return its bounds; None at a brace that is plain text."""
        simple = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._expression[self._position])
        if simple is not None:
            bounds, end = simple, self._position + 1
        else:
            counted = _REPEAT.match(self._expression, self._position)
            if counted is None:
                return None
            min_count, comma, max_count = counted.groups()
            bounds, end = self._check_bounds(min_count, comma, max_count), counted.end()
        lazy = self._expression.startswith("?", end)
        self._position = end + lazy
        return bounds

    def _check_bounds(self, min_count: str, comma: str | None, max_count: str | None) -> tuple[int, int | None]:
        # Check the lengths first: Python refuses to parse numbers of thousands of digits.
        if max(len(min_count), len(max_count or "")) > 4:
            raise InvalidExpression(f"more than {_MAX_REPEATS} repeats", self._position)
        low = int(min_count)
        high = int(max_count) if max_count else None if comma else low
        if low > _MAX_REPEATS or (high is not None and not low <= high <= _MAX_REPEATS):
            raise InvalidExpression(
                f"repeats from {low} to {high}, not in order or more than {_MAX_REPEATS},", self._position
            )
        return low, high

    def _repeat(self, min_count: int, max_count: int | None, *, after_repeat: bool) -> None:
        parts = self._groups[-1].parts
        if after_repeat or not parts:
            raise InvalidExpression("a repetition of nothing or of a repetition", self._position - 1)
        parts[-1] = self._bounded(repetition(self._listed([parts[-1]])[0], min_count, max_count))

    def _open_group(self) -> None:
        if len(self._groups) > _MAX_DEPTH:
            raise InvalidExpression(f"groups more than {_MAX_DEPTH} deep", self._position)
        opened_at, outer_flags, named = self._position, self._flags, False
        if self._expression.startswith("(?", self._position):
            flags = _FLAGS.match(self._expression, self._position)
            group = flags or _NAMED_GROUP.match(self._expression, self._position)
            if group is None:
                raise InvalidExpression("a group of an unknown kind", self._position)
            self._position = group.end()
            named = flags is None
            if flags is not None:
                self._set_flags(flags[1], flags[2] or "")
                if flags[3] == ")":
                    # Flags alone apply until the end of the enclosing group.
                    return
        else:
            self._position += 1
        self._groups.append(_Group(opened_at, outer_flags, named))

    def _set_flags(self, on: str, off: str) -> None:
        self._flags = _Flags(
            ("i" in on or self._flags.ignore_case) and "i" not in off,
            ("s" in on or self._flags.dot_matches_line_feed) and "s" not in off,
        )

    def _close_group(self) -> None:
        if len(self._groups) == 1:
            raise InvalidExpression("a ) without its group", self._position)
        self._flags = self._groups[-1].outer_flags
        part = self._end_group()
        self._groups[-1].parts.append(part)
        self._position += 1

    def _end_group(self) -> Part:
        self._end_alternative()
        group = self._groups.pop()
        part = alternatives(group.done)
        # Names may be invalid or repeated, which is only detected by compiling.
        return part.unlisted() if group.named else part

    def _end_alternative(self) -> None:
        group = self._groups[-1]
        group.done.append(self._bounded(sequence(self._listed(group.parts))))
        group.parts = []

    def _listed(self, parts: list[Part]) -> list[Part]:
        """Return the parts, without their languages once the expansion limit is used up."""
        return parts if self._room > 0 else [part.unlisted() for part in parts]

    def _bounded(self, part: Part) -> Part:
        self._room -= part.expansion
        return part if self._room > 0 else part.unlisted()

    def _take_escape(self) -> list[Part]:
        """Read an escape outside of a class."""
        letter = self._expression[self._position + 1 : self._position + 2]
        if letter == "Q":
            start = self._position + 2
            end = self._expression.find("\\E", start)
            quoted = self._expression[start:] if end < 0 else self._expression[start:end]
            self._position = start + len(quoted) + (0 if end < 0 else 2)
            return self._text(quoted)
        anchors = {"A": AT_START, "z": AT_END, "b": opaque(), "B": opaque(matches_empty=True)}
        if letter in anchors:
            self._position += 2
            return [anchors[letter]]
        if self._skip_escaped_class():
            return [one_of(_DIGITS) if letter == "d" else opaque()]
        code = self._take_escaped_code()
        return [opaque()] if _is_surrogate(code) else self._text(chr(code))

    def _skip_escaped_class(self) -> bool:
        """Skip an escape that stands for many characters, if there is one here."""
        found = _ESCAPED_CLASS.match(self._expression, self._position)
        self._position = found.end() if found else self._position
        return found is not None

    def _take_escaped_code(self) -> int:
        """Read an escape that stands for one character, and return its code point."""
        letter = self._expression[self._position + 1 : self._position + 2]
        number = _NUMBER.match(self._expression, self._position)
        if number is not None:
            octal, hexadecimal = number[1], number[2] or number[3]
            code, end = int(hexadecimal, 16) if octal is None else int(octal, 8), number.end()
        elif letter in _CONTROLS or (letter.isascii() and letter and not letter.isalnum()):
            code, end = ord(_CONTROLS.get(letter, letter)), self._position + 2
        else:
            code, end = -1, self._position
        if not 0 <= code <= 0x10FFFF:
            raise InvalidExpression("an unknown escape", self._position)
        self._position = end
        return code

    def _take_class(self) -> Part:
        """Read a class, and list its characters if they are few and each is named."""
        opened_at = self._position
        self._position += 1
        negated = self._expression.startswith("^", self._position)
        self._position += negated
        first = self._position
        members: set[str] = set()
        listed = not negated and not self._flags.ignore_case
        # A leading ] is a member.
        while self._position == first or not self._expression.startswith("]", self._position):
            if self._position >= len(self._expression):
                raise InvalidExpression("a class without its ]", opened_at)
            self._count_step()
            if self._skip_class_inside():
                listed = False
                continue
            low, high = self._take_range()
            listed = listed and high < low + _MAX_CLASS and not (_is_surrogate(low) or _is_surrogate(high))
            if listed:
                members.update(map(chr, range(low, high + 1)))
        self._position += 1
        return one_of(frozenset(members)) if listed else opaque()

    def _skip_class_inside(self) -> bool:
        """Skip a class such as [:alpha:] inside of a class, if there is one here."""
        if self._expression.startswith("[:", self._position) and self._position + 2 <= self._last_inner_end:
            self._position = self._expression.index(":]", self._position + 2) + 2
            return True
        return self._skip_escaped_class()

    def _take_range(self) -> tuple[int, int]:
        """Read a member of a class, and return its first and last character."""
        start = self._position
        low = self._take_member()
        rest = self._expression[self._position : self._position + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return low, low
        self._position += 1
        high = self._take_member()
        if high < low:
            raise InvalidExpression(f"a range {self._expression[start : self._position]} that is not in order", start)
        return low, high

    def _take_member(self) -> int:
        character = self._expression[self._position]
        if character == "\\":
            return self._take_escaped_code()
        self._position += 1
        return ord(character)


def _is_surrogate(code: int) -> bool:
    """Whether a code point is half of a surrogate pair, which no text contains."""
    return 0xD800 <= code <= 0xDFFF

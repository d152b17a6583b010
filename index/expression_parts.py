"""Parts of a regular expression, described by the texts that they match, and how parts are combined.

A part's *language* is the list of its matches, if it can be listed: values, and prefixes that any text may follow. It
is given up (None) when it gets long or can't be listed. Two properties are always known: a prefix of every match, and
whether the empty text matches. Nothing here parses an expression; everything is a function of values.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby, product

# Lists that an expression states explicitly may be long; products of lists may not.
_MAX_PRODUCT = 1000
_MAX_CHARACTERS = 1 << 20
_MAX_COUNTED = 8


class Tail(Enum):
    """What may follow a text: nothing, any text, or any text of at least one character."""

    NOTHING = 0
    ANYTHING = 1
    SOMETHING = 2


Language = frozenset[tuple[str, Tail]]
_EMPTY: Language = frozenset({("", Tail.NOTHING)})
_ANYTHING: Language = frozenset({("", Tail.ANYTHING)})
_SOMETHING: Language = frozenset({("", Tail.SOMETHING)})


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an expression. The language of a part that is bound to a position is only valid at that position."""

    language: Language | None
    prefix: str
    matches_empty: bool
    # Part of it only matches at the start, or the end, of a text.
    at_start: bool = False
    at_end: bool = False
    is_any_character: bool = False
    # It contains a repetition with bounds. RE2 limits products of these, so they are not multiplied here.
    is_counted: bool = False

    @property
    def expansion(self) -> int:
        """The size of the language; 0 if it is a single text."""
        if self.language is None or len(self.language) == 1:
            return 0
        return sum(len(start) + 1 for start, _ in self.language)

    def unlisted(self) -> "Part":
        """The same part, without its language."""
        return replace(self, language=None, is_any_character=False)


def text(characters: str) -> Part:
    """Matches these characters."""
    return Part(frozenset({(characters, Tail.NOTHING)}), characters, not characters)


def one_of(characters: frozenset[str]) -> Part:
    """Matches one of these characters."""
    language = frozenset((character, Tail.NOTHING) for character in characters)
    return Part(language, _common_prefix(language), matches_empty=False)


def opaque(*, matches_empty: bool = False) -> Part:
    """Matches unknown texts; only whether the empty text matches is known."""
    return Part(None, "", matches_empty)


ANY_CHARACTER = Part(None, "", matches_empty=False, is_any_character=True)
AT_START = Part(_EMPTY, "", matches_empty=True, at_start=True)
AT_END = Part(_EMPTY, "", matches_empty=True, at_end=True)


def sequence(parts: Sequence[Part]) -> Part:
    """Matches the parts one after the other."""
    if len(parts) == 1:
        return parts[0]
    language = _product_of(parts) if _anchors_agree(parts) else None
    return Part(
        language,
        _prefix_of(parts) if language is None else _common_prefix(language),
        all(part.matches_empty for part in parts),
        **_marks(parts),
    )


def alternatives(parts: Sequence[Part]) -> Part:
    """Matches one of the parts."""
    if len(parts) == 1:
        return parts[0]
    languages = [part.language for part in parts if part.language is not None]
    language = frozenset[tuple[str, Tail]]().union(*languages) if len(languages) == len(parts) else None
    return Part(
        language,
        _common_start(part.prefix for part in parts),
        any(part.matches_empty for part in parts),
        **_marks(parts),
    )


def repetition(part: Part, min_count: int, max_count: int | None) -> Part:
    """Matches a part several times in a row; without a limit if `max_count` is None."""
    language = None if part.at_start or part.at_end else _repeated(part, min_count, max_count)
    prefix = part.prefix if min_count else ""
    return Part(
        language,
        prefix if language is None else _common_prefix(language),
        min_count == 0 or part.matches_empty,
        at_start=part.at_start,
        at_end=part.at_end,
        is_counted=part.is_counted or (min_count, max_count) not in {(0, None), (1, None), (0, 1)},
    )


def _marks(parts: Sequence[Part]) -> dict[str, bool]:
    return {mark: any(getattr(part, mark) for part in parts) for mark in ("at_start", "at_end", "is_counted")}


def _anchors_agree(parts: Sequence[Part]) -> bool:
    """Whether nothing that may consume a character precedes a part for the start, or follows one for the end."""
    taking = [position for position, part in enumerate(parts) if part.language != _EMPTY]
    if not taking:
        return True
    return not any(
        (part.at_start and position > taking[0]) or (part.at_end and position < taking[-1])
        for position, part in enumerate(parts)
    )


def _product_of(parts: Sequence[Part]) -> Language | None:
    if any(part.language is None for part in parts):
        return None
    result: Language | None = _EMPTY
    # Runs of plain text are joined first, so that a long run takes linear time.
    for is_plain, run in groupby(parts, lambda part: _only_text(part) is not None):
        languages = [part.language for part in run]
        if is_plain:
            joined = "".join(start for language in languages for start, _ in language or ())
            languages = [frozenset({(joined, Tail.NOTHING)})]
        for language in languages:
            result = None if result is None or language is None else _product(result, language)
        if result is None:
            return None
    return result


def _product(left: Language, right: Language) -> Language | None:
    if right == _EMPTY:
        return left
    if len(left) * len(right) > _MAX_PRODUCT and min(len(left), len(right)) > 1:
        return None
    characters = len(right) * sum(len(start) for start, _ in left) + len(left) * sum(len(start) for start, _ in right)
    if characters > _MAX_CHARACTERS:
        return None
    pairs = [_join(first, second) for first, second in product(left, right)]
    joined = frozenset(pair for pair in pairs if pair is not None)
    return None if None in pairs else joined


def _join(left: tuple[str, Tail], right: tuple[str, Tail]) -> tuple[str, Tail] | None:
    start, tail = left
    if tail is Tail.NOTHING:
        return start + right[0], right[1]
    if right == ("", Tail.NOTHING):
        return left
    if right[0] or (tail is Tail.SOMETHING and right[1] is Tail.SOMETHING):
        # Text after any text, or at least two characters: no longer a prefix and its tail.
        return None
    return start, Tail.SOMETHING if Tail.SOMETHING in (tail, right[1]) else Tail.ANYTHING


def _repeated(part: Part, min_count: int, max_count: int | None) -> Language | None:
    if (part.is_any_character or part.language in (_ANYTHING, _SOMETHING)) and max_count is None and min_count <= 1:
        return _ANYTHING if min_count == 0 or part.matches_empty else _SOMETHING
    language = part.language
    if language is None or max_count is None or max_count > _MAX_COUNTED or (part.is_counted and max_count > 1):
        return None
    return _powers(language, min_count, max_count)


def _powers(language: Language, min_count: int, max_count: int) -> Language | None:
    power: Language | None = _EMPTY
    result = set[tuple[str, Tail]]()
    for times in range(max_count + 1):
        if power is None:
            return None
        if times >= min_count:
            result |= power
        if times < max_count:
            power = _product(power, language)
    return frozenset(result)


def _only_text(part: Part) -> str | None:
    """Return the only text that a part matches, or None."""
    if part.language is None or len(part.language) != 1:
        return None
    ((start, tail),) = part.language
    return start if tail is Tail.NOTHING else None


def _prefix_of(parts: Sequence[Part]) -> str:
    prefixes = []
    for part in parts:
        prefixes.append(part.prefix)
        if _only_text(part) is None:
            break
    return "".join(prefixes)


def _common_prefix(language: Language) -> str:
    return _common_start(start for start, _ in language)


def _common_start(texts: Iterable[str]) -> str:
    given = list(texts)
    # All others are between the minimum and the maximum, so what these two share, all share.
    first, last = min(given, default=""), max(given, default="")
    same, different = 0, min(len(first), len(last)) + 1
    while different - same > 1:
        middle = (same + different) // 2
        same, different = (middle, different) if last.startswith(first[:middle]) else (same, middle)
    return first[:same]

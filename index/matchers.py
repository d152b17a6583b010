"""PromQL's label matchers, and the Lucene query that several of them make together.

In Prometheus and here, a missing label is equivalent to one with the empty value, whereas Lucene's queries only find
labels that exist. So each matcher is split into what it requires of values, which Lucene can find, and whether it
matches the empty value, and so a missing label.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from strandline.errors import ExitCode, Fatal
from strandline.index.pylucene import queries
from strandline.index.pylucene.classes import Query
from strandline.index.pylucene.failures import InvalidRegex, RegexTooCostly
from strandline.index.regular_expressions import Alternatives, General, InvalidExpression, Shape, analyse
from strandline.wire.kernels.labels import MAX_TEXT

# Lucene's limit is 1,024 clauses per query.
_MAX_CLAUSES = 1000
_MAX_SHOWN_CHARACTERS = 200
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class InvalidMatcher(Fatal):
    """A matcher, or a list of them, is invalid."""

    exit_code = ExitCode.USAGE


class MatcherTooCostly(RegexTooCostly):
    """`RegexTooCostly`, with the matcher, or the matchers of which it was one."""

    def __init__(self, matchers: Sequence["Matcher"], found: RegexTooCostly) -> None:
        # Not RegexTooCostly's constructor, which would wrap the message again.
        Fatal.__init__(self, f"{' or '.join(map(str, matchers))}: {found.message}", remedy=found.remedy)
        self.examined_terms = found.examined_terms
        self.elapsed_ms = found.elapsed_ms


class MatchOp(StrEnum):
    """How a matcher compares."""

    EQUAL = "="
    NOT_EQUAL = "!="
    MATCH = "=~"
    NOT_MATCH = "!~"


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on the value of a label. A regular expression is only parsed when it is used."""

    label: str
    op: MatchOp
    value: str

    def __post_init__(self) -> None:
        if self.label.isascii() and self.value.isascii():
            return
        for text in (self.label, self.value):
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InvalidMatcher(f"{self} has half of a surrogate pair, which is not a character") from error

    def __str__(self) -> str:
        """As in PromQL; very long texts are shortened."""
        name = self.label if _PLAIN_NAME.fullmatch(self.label) else _quoted(self.label)
        return f"{name}{self.op}{_quoted(self.value)}"

    @property
    def is_negative(self) -> bool:
        """Whether it matches what its value, or expression, does not."""
        return self.op in (MatchOp.NOT_EQUAL, MatchOp.NOT_MATCH)


@dataclass(frozen=True, slots=True)
class RegexBudget:
    """The limits on matching the expressions of one search: values examined, and milliseconds."""

    max_terms: int
    max_ms: int

    def __post_init__(self) -> None:
        if self.max_terms < 1 or self.max_ms < 1:
            raise InvalidMatcher(
                f"a budget of {self.max_terms} terms and {self.max_ms} ms allows no regular expression",
                remedy="Allow at least one term and 1 ms",
            )

    def shared_by(self, expressions: int) -> "RegexBudget":
        """The share of each of several expressions."""
        return RegexBudget(max(1, self.max_terms // expressions), max(1, self.max_ms // expressions))


def matches_empty(matcher: Matcher) -> bool:
    """Whether a matcher matches the empty value, and so keys without its label.

    Raises `InvalidMatcher` for an invalid expression.
    """
    return _shape(matcher).matches_empty != matcher.is_negative


def to_query(matchers: Sequence[Matcher], budget: RegexBudget) -> Query:
    """Return a query for the keys that all of the matchers match; without matchers, every key.

    The query may be used for one search, whose expressions share the budget evenly; run it inside `matchers_named`, so
    that an error names the matcher. Raises `InvalidMatcher` for an expression that is not RE2's, and `RegexTooCostly`
    for one that is too large.
    """
    different = list(dict.fromkeys(matchers))
    shapes = [_shape(matcher) for matcher in different]
    clauses = sum(map(_clauses, shapes))
    if clauses > _MAX_CLAUSES:
        raise InvalidMatcher(
            f"{len(different)} matchers make {clauses} clauses; the limit is {_MAX_CLAUSES} per query",
            remedy="Combine the values of a label in one matcher: a|b|c",
        )
    share = budget.shared_by(max(1, sum(isinstance(shape, General) for shape in shapes)))
    wanted: list[Query] = []
    unwanted: list[Query] = []
    for matcher, shape in zip(different, shapes, strict=True):
        label = matcher.label
        if matcher.is_negative:
            unwanted += _values(matcher, shape, share)
            wanted += [queries.has_label(label)] if shape.matches_empty else []
        elif not shape.matches_empty:
            wanted.append(queries.any_of(_values(matcher, shape, share)))
        elif not _matches_everything(shape):
            unwanted.append(queries.all_of([queries.has_label(label)], but_none_of=_values(matcher, shape, share)))
    return queries.all_of(wanted, but_none_of=unwanted)


@contextmanager
def matchers_named(matchers: Sequence[Matcher]) -> Iterator[None]:
    """If a search inside was too costly, raise the error again with the matchers that may be the cause."""
    try:
        yield
    except MatcherTooCostly:
        raise
    except RegexTooCostly as error:
        costly = [matcher for matcher in matchers if isinstance(_shape(matcher), General)]
        raise MatcherTooCostly(costly, error) from error


def _shape(matcher: Matcher) -> Shape:
    """The values that a matcher specifies, whether it wants them or not."""
    if matcher.op in (MatchOp.EQUAL, MatchOp.NOT_EQUAL):
        return Alternatives(frozenset({matcher.value}))
    try:
        return analyse(matcher.value)
    except InvalidExpression as error:
        raise InvalidMatcher(f"{matcher}: {error.message}", remedy=error.remedy) from error


def _matches_everything(shape: Shape) -> bool:
    return isinstance(shape, Alternatives) and shape.matches_all_but_empty and shape.matches_empty


def _clauses(shape: Shape) -> int:
    """An upper bound of the Lucene clauses of a shape."""
    return 2 if isinstance(shape, General) else 2 + len(shape.prefixes) + 2 * len(shape.longer_than)


def _values(matcher: Matcher, shape: Shape, budget: RegexBudget) -> list[Query]:
    """Return queries that together find the keys whose label has a value of this shape, except the empty value."""
    label = matcher.label
    if isinstance(shape, General):
        return [_expression(matcher, shape.prefix, budget)]
    if shape.matches_all_but_empty:
        return [queries.has_label(label)]
    values = [value for value in shape.values if 0 < len(value.encode()) <= MAX_TEXT]  # No key has longer ones.
    found = [queries.label_starts_with(label, prefix) for prefix in shape.prefixes]
    found += [
        queries.all_of([queries.label_starts_with(label, prefix)], but_none_of=[queries.label_is(label, prefix)])
        for prefix in shape.longer_than
    ]
    if values:
        found.append(queries.label_is(label, values[0]) if len(values) == 1 else queries.label_in(label, values))
    return found


def _expression(matcher: Matcher, prefix: str, budget: RegexBudget) -> Query:
    try:
        return queries.label_matches(
            matcher.label, matcher.value, prefix=prefix, max_terms=budget.max_terms, max_ms=budget.max_ms
        )
    except InvalidRegex as error:
        raise InvalidMatcher(f"{matcher}: {error.message}", remedy=error.remedy) from error
    except RegexTooCostly as error:
        raise MatcherTooCostly([matcher], error) from error


def _quoted(text: str) -> str:
    shown = text if len(text) <= _MAX_SHOWN_CHARACTERS else text[:_MAX_SHOWN_CHARACTERS] + "..."
    return json.dumps(shown, ensure_ascii=False)

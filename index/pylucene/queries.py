"""Queries over part keys, as functions. None is scored.

They have Lucene's semantics: a missing label matches nothing. PromQL's semantics of missing labels are not known here.
"""

from collections.abc import Iterable

from pyroaring import BitMap

from strandline.index.documents import encode_values
from strandline.index.pylucene.classes import Query, Term, java
from strandline.index.pylucene.failures import java_failures
from strandline.index.vm import to_java


def everything() -> Query:
    """Every part key."""
    return java().match_all()


def has_label(label: str) -> Query:
    """Keys with this label, with any value."""
    return java().has_label_query(label)


def label_is(label: str, value: str) -> Query:
    """Keys whose label has this value."""
    return java().term_query(_term(label, value))


def label_in(label: str, values: Iterable[str]) -> Query:
    """Keys whose label has one of these values."""
    return java().term_sets.anyOf(label, to_java(encode_values(values)))


def label_starts_with(label: str, prefix: str) -> Query:
    """Keys whose label has a value with this prefix; with an empty prefix, keys that have the label."""
    return java().prefix_query(_term(label, prefix)) if prefix else has_label(label)


def label_matches(label: str, expression: str, *, prefix: str = "", max_terms: int, max_ms: int) -> Query:
    """Keys whose label has a value that an RE2 expression matches completely: the dot matches a line feed,
    case-sensitive.

    `prefix` is plain text that every match is known to start with: only such values are examined. A search that would
    examine more than `max_terms` values, counted per segment of the index, or take longer than `max_ms`, raises
    `RegexTooCostly`; the query may be used for one search. This call raises `InvalidRegex` for an invalid expression,
    and `RegexTooCostly` for one that is too large.
    """
    classes = java()
    with java_failures():
        return classes.regex_query(
            classes.label_prefix + label, expression, to_java(prefix.encode()), max_terms, max_ms
        )


def part_id_in(part_ids: BitMap) -> Query:
    """Keys with these part ids. Combined with a query that matches few keys, it only checks each of them."""
    return java().part_id_query(to_java(part_ids.serialize()))


def all_of(wanted: Iterable[Query], *, but_none_of: Iterable[Query] = ()) -> Query:
    """Keys that match all of the wanted queries and none of the others. Without wanted queries, every key."""
    queries, unwanted = list(wanted) or [everything()], list(but_none_of)
    if len(queries) == 1 and not unwanted:
        return queries[0]
    classes = java()
    builder = classes.boolean_query()
    for query in queries:
        builder.add(query, classes.filter)
    for query in unwanted:
        builder.add(query, classes.must_not)
    return builder.build()


def any_of(queries: Iterable[Query]) -> Query:
    """Keys that match at least one of the queries; no keys without queries."""
    alternatives = list(queries)
    if len(alternatives) == 1:
        return alternatives[0]
    classes = java()
    builder = classes.boolean_query()
    for query in alternatives:
        builder.add(query, classes.should)
    return builder.build()


def _term(label: str, value: str) -> Term:
    classes = java()
    return classes.term(classes.label_prefix + label, classes.bytes_ref(to_java(value.encode())))

"""Queries over part keys, as plain functions. None is ever scored.

They mean what Lucene means by them: a label that a key does not have matches nothing. What PromQL makes of a missing
label is not known here.
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
    """Keys with this label, whatever its value."""
    return java().has_label_query(label)


def label_is(label: str, value: str) -> Query:
    """Keys whose label has this value."""
    return java().term_query(_term(label, value))


def label_in(label: str, values: Iterable[str]) -> Query:
    """Keys whose label has one of these values."""
    return java().term_sets.anyOf(label, to_java(encode_values(values)))


def label_starts_with(label: str, prefix: str) -> Query:
    """Keys whose label has a value with this prefix; with an empty one, keys that have the label."""
    return java().prefix_query(_term(label, prefix)) if prefix else has_label(label)


def label_matches(label: str, expression: str, *, prefix: str = "", max_terms: int, max_ms: int) -> Query:
    """Keys whose label has a value that all of an RE2 expression matches: the dot matches a line feed, case counts.

    `prefix` is plain text that every match is known to start with: only such values are examined. A search that would
    examine more values than `max_terms`, counted in each of the index's segments, or take longer than `max_ms` for it,
    raises `RegexTooCostly`; the query is good for one search. An expression that is none raises `InvalidRegex`, and one
    that is far too large `RegexTooCostly`, both here and now.
    """
    classes = java()
    with java_failures():
        return classes.regex_query(
            classes.label_prefix + label, expression, to_java(prefix.encode()), max_terms, max_ms
        )


def part_id_in(part_ids: BitMap) -> Query:
    """Keys with these part ids. Beside a query that matches few keys it costs only a look at each of them."""
    return java().part_id_query(to_java(part_ids.serialize()))


def all_of(wanted: Iterable[Query], *, but_none_of: Iterable[Query] = ()) -> Query:
    """Keys that match each of the wanted queries and none of the others. No wanted query at all means every key."""
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
    """Keys that match one of the queries or more; none of them if there is no query."""
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

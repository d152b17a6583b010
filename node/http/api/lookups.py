"""Series and label look-ups: what a request asks for, and an answer to it."""

from collections.abc import Callable, Mapping

from strandline.node.http.api.label_names import label_name_of
from strandline.node.http.api.pieces import series_json, terms_json
from strandline.node.http.api.sending import Answer
from strandline.node.http.parameters import Parameters
from strandline.node.query.answers import SeriesAnswer
from strandline.node.query.asks import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    LabelNamesAsk,
    LabelValuesAsk,
    Lookup,
    SeriesAsk,
)
from strandline.node.query.quick import LookupAnswer

ReadLookup = Callable[[Parameters, str, int], Lookup]
"""What parameters ask for, with the label that the path names, if it names one; at most so many results. Raises
`BadParameter`.
"""


def series_lookup(parameters: Parameters, _label: str, most: int) -> SeriesAsk:
    """The label sets of the series that a selector matches."""
    return SeriesAsk(parameters.selectors(required=True), parameters.time_range(), parameters.limit(most))


def names_lookup(parameters: Parameters, _label: str, most: int) -> LabelNamesAsk:
    """The names of labels."""
    return LabelNamesAsk(parameters.selectors(required=False), parameters.time_range(), parameters.limit(most))


def values_lookup(parameters: Parameters, label: str, most: int) -> LabelValuesAsk:
    """The values of one label."""
    name, selectors = label_name_of(label), parameters.selectors(required=False)
    return LabelValuesAsk(name, selectors, parameters.time_range(), parameters.limit(most))


READERS: Mapping[str, ReadLookup] = {SERIES: series_lookup, LABEL_NAMES: names_lookup, LABEL_VALUES: values_lookup}
"""By the kinds of questions."""


def answer_of(found: LookupAnswer, limit: int) -> Answer:
    """What was found, as it is sent, of no more than so many results."""
    warnings = found.warnings
    if found.more:
        more = f"results truncated due to limit: there are more than the {limit} that are listed"
        warnings = (*warnings, more)
    if isinstance(found, SeriesAnswer):
        return Answer(series_json(found.keys), warnings)
    # One that has nothing in it is as quick to ask for again, and there are as many of them as somebody thinks up.
    return Answer(terms_json(found), warnings, may_be_kept=found.of_all and len(found) > 0 and not warnings)

import re

import orjson
import pytest

from strandline.node.page.language import AGGREGATIONS, KEYWORDS, language_module
from strandline.promql.errors import ParseError
from strandline.promql.functions import FUNCTIONS
from strandline.promql.parser import parse
from strandline.promql.tokens import AGGREGATORS
from strandline.promql.tokens import KEYWORDS as ALL_KEYWORDS

pytestmark = pytest.mark.unit


def words(name: str) -> dict[str, dict[str, str]]:
    match = re.search(rb"export const " + name.encode() + rb" = (.*);", language_module())
    assert match is not None
    return {word["name"]: word for word in orjson.loads(match[1])}


def is_accepted(call: str) -> bool:
    try:
        parse(call)
    except ParseError as error:
        return "enabled" not in error.message
    return True


def test_functions_are_offered_if_the_parser_accepts_them_and_they_need_no_histograms() -> None:
    accepted = {
        name for name, function in FUNCTIONS.items() if is_accepted(f"{name}()") and not function.is_for_histograms
    }
    assert words("FUNCTIONS").keys() == accepted
    assert {"rate", "histogram_quantile", "time"} <= accepted


def test_aggregations_are_offered_if_the_parser_accepts_them() -> None:
    assert set(AGGREGATIONS) == {kind.value for kind in AGGREGATORS if is_accepted(f"{kind.value}(up)")}


def test_keywords_are_a_subset_of_promqls() -> None:
    assert KEYWORDS.keys() <= ALL_KEYWORDS.keys()


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("rate", "(range vector)"),
        ("round", "(vector, [scalar])"),
        ("label_join", "(vector, string, string, string...)"),
        ("time", "()"),
    ],
)
def test_a_signature_shows_optional_and_repeated_arguments(name: str, signature: str) -> None:
    assert words("FUNCTIONS")[name]["signature"] == signature

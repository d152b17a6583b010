"""docs/promql.md contains the tables that the parser uses."""

from pathlib import Path

import pytest

from strandline.promql.expressions import Aggregator
from strandline.promql.functions import FUNCTIONS
from strandline.promql.reference import reference

pytestmark = pytest.mark.unit

PAGE = Path(__file__).parents[3] / "docs" / "promql.md"


def test_the_page_has_the_tables_of_aggregations_and_functions() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(f"\n\n{reference()}"), (
        "replace them at the end of docs/promql.md by the output of python -m strandline.promql.reference"
    )


def test_every_name_has_one_row() -> None:
    tables = reference()
    for name in [*Aggregator, *FUNCTIONS]:
        assert tables.count(f"| `{name}(") == 1, name

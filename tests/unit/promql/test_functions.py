"""The table of functions."""

import pytest

from strandline.promql.functions import FUNCTIONS
from strandline.promql.parser import parse
from strandline.promql.value_types import ValueType

pytestmark = pytest.mark.unit

ARGUMENTS = {
    ValueType.SCALAR: "1",
    ValueType.VECTOR: "up",
    ValueType.MATRIX: "up[5m]",
    ValueType.STRING: "'a'",
}
STABLE = sorted(name for name in FUNCTIONS if not FUNCTIONS[name].is_experimental)


def test_the_table_contains_all_functions_of_prometheus():
    assert (len(FUNCTIONS), len(STABLE)) == (90, 73)
    assert all(name == function.name for name, function in FUNCTIONS.items())


@pytest.mark.parametrize("name", STABLE)
def test_each_function_takes_the_number_of_arguments_in_the_table(name):
    function = FUNCTIONS[name]
    given = [ARGUMENTS[wanted] for wanted in function.parameters]
    least = len(given) - (1 if function.is_variadic else function.optional)
    for count in range(least, len(given) + 1):
        assert parse(f"{name}({', '.join(given[:count])})")
    if function.is_variadic:
        assert parse(f"{name}({', '.join(given + given[-1:] * 5)})")

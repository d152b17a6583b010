"""The table of functions: names, types, and what documentation says of each. How each is evaluated is the evaluation's
to know, by the same names.
"""

from dataclasses import dataclass

from strandline.promql.value_types import ValueType


@dataclass(frozen=True, slots=True)
class Function:
    """A function of PromQL. The last `optional` parameters may be left out; with `is_variadic` the last parameter may
    stand any number of times, and need not stand at all. `is_experimental` ones are refused by name.
    """

    name: str
    parameters: tuple[ValueType, ...]
    returns: ValueType
    summary: str
    optional: int = 0
    is_variadic: bool = False
    is_experimental: bool = False
    is_for_histograms: bool = False
    """It gives nothing for floats: native histograms are not stored."""

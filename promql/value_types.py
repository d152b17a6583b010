"""The four types of PromQL's values."""

from enum import StrEnum


class ValueType(StrEnum):
    """The type of an expression. The value is its name in HTTP answers, `display_name` its name in error messages."""

    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    STRING = "string"

    @property
    def display_name(self) -> str:
        """The name as in "expected type range vector"."""
        return {ValueType.VECTOR: "instant vector", ValueType.MATRIX: "range vector"}.get(self, self.value)

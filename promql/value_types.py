"""The four types of PromQL's values."""

from enum import StrEnum


class ValueType(StrEnum):
    """What an expression gives, by the names that HTTP answers have. `display_name` is what error messages call it."""

    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    STRING = "string"

    @property
    def display_name(self) -> str:
        """As in "expected type range vector"."""
        return {ValueType.VECTOR: "instant vector", ValueType.MATRIX: "range vector"}.get(self, self.value)

"""The four types of PromQL's values."""

from enum import StrEnum


class ValueType(StrEnum):
    """What an expression gives, by the names that HTTP answers have. `in_words` is what error messages call it."""

    SCALAR = "scalar"
    VECTOR = "vector"
    MATRIX = "matrix"
    STRING = "string"

    @property
    def in_words(self) -> str:
        """As in "expected type range vector"."""
        return {ValueType.VECTOR: "instant vector", ValueType.MATRIX: "range vector"}.get(self, self.value)

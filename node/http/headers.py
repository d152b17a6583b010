"""The header fields of a request."""

from collections.abc import Iterator, Mapping
from typing import TypeVar, overload

Other = TypeVar("Other")


class Headers(Mapping[str, str]):
    """Fields by case-insensitive name. The values of a repeated field are joined by commas, as in RFC 9110."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, str]) -> None:
        """`fields` has names in lower case."""
        self._fields = fields

    @classmethod
    def of(cls, pairs: list[tuple[bytes, bytes]]) -> "Headers":
        """From raw names and values. A byte that is not UTF-8 becomes a lone surrogate."""
        fields: dict[str, str] = {}
        for raw_name, raw_value in pairs:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("utf-8", "surrogateescape")
            fields[name] = f"{fields[name]}, {value}" if name in fields else value
        return cls(fields)

    @overload
    def get(self, name: str, /) -> str | None: ...

    @overload
    def get(self, name: str, /, default: str) -> str: ...

    @overload
    def get(self, name: str, /, default: Other) -> str | Other: ...

    def get(self, name: str, /, default: object = None) -> object:
        # `Mapping.get` is slower: it raises an exception for a missing field.
        return self._fields.get(name.lower(), default)

    def __getitem__(self, name: str) -> str:
        return self._fields[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an `Accept-Encoding` field allows gzip."""
    for part in accept_encoding.lower().split(","):
        coding, _, parameters = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            quality = parameters.strip().removeprefix("q=")
            return not (quality and quality.strip("0.") == "" and parameters)
    return False

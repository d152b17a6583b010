"""Reads the fields and columns of a message, and checks types and bounds. A wrong one raises `FrameDamaged`."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from strandline.node.query.frames import FrameDamaged, Message
from strandline.time_range import TimeRange

Value = TypeVar("Value")
# Part ids and hashes cross the link as bytes: frames have no columns of four or sixteen bytes.
PART_ID_BYTES = 4
HASH_BYTES = 16


class Fields:
    """The fields of a message."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def get(self, name: str, read: Callable[[Any], Value]) -> Value:
        """A field as `read` converts it. Errors of `read` become `FrameDamaged`."""
        try:
            return read(self._message.fields.get(name))
        except (TypeError, ValueError, KeyError, OverflowError) as error:
            raise FrameDamaged(f"a frame of kind {self._message.kind!r} has an invalid {name}: {error}") from error

    def count(self, name: str) -> int:
        return self.get(name, read_count)

    def flag(self, name: str) -> bool:
        value = self._message.fields.get(name)
        return value if value is True or value is False else self.get(name, read_flag)


def read_time_range(value: Any) -> TimeRange | None:
    return None if value is None else TimeRange(*read_row(value, "ii"))


def read_row(value: Any, kinds: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != len(kinds):
        raise ValueError(f"{value!r} is not a list of {len(kinds)}")
    wanted = _types(kinds)
    if tuple(map(type, value)) != wanted:
        wrong = next(one for one, kind in zip(value, wanted, strict=True) if type(one) is not kind)
        raise TypeError(f"{wrong!r} has the wrong type")
    return value


@cache
def _types(kinds: str) -> tuple[type, ...]:
    return tuple({"s": str, "i": int}[kind] for kind in kinds)


def read_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    return value


def read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def read_texts(value: Any) -> tuple[str, ...]:
    return tuple(map(read_text, read_list(value)))


def read_flag(value: Any) -> bool:
    raise TypeError(f"{value!r} is neither true nor false")


def read_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a non-negative integer")
    return value


def read_number(value: Any) -> float:
    if type(value) not in (int, float) or not value >= 0:
        raise ValueError(f"{value!r} is not a number of seconds")
    return float(value)


def typed_columns(columns: Sequence[Any], *kinds: str) -> Sequence[Any]:
    if [column.dtype.str for column in columns] != list(kinds):
        raise FrameDamaged(f"a frame has columns of {[column.dtype.str for column in columns]}, not of {list(kinds)}")
    return columns


def read_hashes(message: Message) -> bytes:
    (column,) = typed_columns(message.columns, "|u1")
    if len(column) % HASH_BYTES:
        raise FrameDamaged(f"a frame has {len(column)} bytes of hashes, not a multiple of {HASH_BYTES}")
    hashes: bytes = column.tobytes()
    return hashes

"""Reads the fields of a protobuf message one by one, for messages that are small but may be malicious.

Unknown fields are returned, and the caller skips them. Groups, which are deprecated, are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.http.errors import BadParameter

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED_64: 8, _FIXED_32: 4}
_MAX_VARINT = 10
_LAST_NUMBER = 2**29 - 1
# Bytes with the continuation bit, and one without.
_VARINT_BYTES = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]", re.DOTALL)


class BadMessage(BadParameter):
    """Bytes that are not a valid message."""


@dataclass(slots=True)
class FieldBudget:
    """How many fields may still be read. The cost of a message is the number of its fields."""

    left: int

    def take(self) -> None:
        """Count one field. Raises `BadMessage` if none is left."""
        if self.left == 0:
            raise BadMessage("the read request has too many fields", remedy="Send several requests")
        self.left -= 1


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `varint` of a number, `content` of a text or a message, neither of other types."""

    message: str
    number: int
    varint: int | None
    content: bytes | None

    def as_int64(self) -> int:
        """The value as a signed integer."""
        unsigned = self.as_uint64()
        return unsigned - (1 << 64) if unsigned >> 63 else unsigned

    def as_uint64(self) -> int:
        """The value as an unsigned integer."""
        if self.varint is None:
            raise self._wrong_type("a number")
        return self.varint

    def as_bytes(self) -> bytes:
        """The value as bytes."""
        if self.content is None:
            raise self._wrong_type("bytes")
        return self.content

    def as_text(self) -> str:
        """The value as text."""
        try:
            return self.as_bytes().decode()
        except UnicodeDecodeError as error:
            raise BadMessage(f"field {self.number} of a {self.message} is not UTF-8: {error.reason}") from error

    def as_numbers(self, budget: FieldBudget) -> tuple[int, ...]:
        """The numbers of a repeated field, packed or not. Each counts as a field of the budget."""
        if self.varint is not None:
            return (self.varint,)
        numbers, packed, at = [], self.as_bytes(), 0
        while at < len(packed):
            budget.take()
            number, at = _varint(packed, at, self.message)
            numbers.append(number)
        return tuple(numbers)

    def _wrong_type(self, wanted: str) -> BadMessage:
        return BadMessage(f"field {self.number} of a {self.message} is not {wanted}")


def read_fields(message: bytes, name: str, budget: FieldBudget) -> Iterator[Field]:
    """The fields of a message in their order. Raises `BadMessage` at the first invalid one."""
    at = 0
    while at < len(message):
        budget.take()
        tag, at = _varint(message, at, name)
        number, kind = tag >> 3, tag & 7
        if not 1 <= number <= _LAST_NUMBER:
            raise BadMessage(f"a {name} has a field with the number {number}, which no field can have")
        if kind == _VARINT:
            value, at = _varint(message, at, name)
            yield Field(name, number, value, None)
            continue
        if kind == _BYTES:
            length, at = _varint(message, at, name)
        elif kind in _FIXED_SIZES:
            length = _FIXED_SIZES[kind]
        else:
            raise BadMessage(f"field {number} of a {name} has the wire type {kind}, which is not in use")
        end = at + length
        if end > len(message):
            raise BadMessage(f"field {number} of a {name} is cut off: {len(message) - at} of {length} bytes are there")
        yield Field(name, number, None, message[at:end] if kind == _BYTES else None)
        at = end


def _varint(message: bytes, at: int, name: str) -> tuple[int, int]:
    """A number and the position after it."""
    found = _VARINT_BYTES.match(message, at)
    if found is None:
        raise BadMessage(f"a {name} has a number at byte {at} that is cut off, or longer than {_MAX_VARINT} bytes")
    value = 0
    for index, byte in enumerate(found.group()):
        value |= (byte & 0x7F) << (7 * index)
    return value & 0xFFFF_FFFF_FFFF_FFFF, found.end()

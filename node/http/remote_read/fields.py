"""The fields of a protobuf message, one by one, for messages that are small but may be hostile.

Unknown fields are there for the caller to pass over. Groups, which nobody has sent for many years, are refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from strandline.node.http.errors import BadParameter

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED_64: 8, _FIXED_32: 4}
_MAX_VARINT = 10
_LAST_NUMBER = 2**29 - 1
# A run of bytes that go on, and one that does not.
_WHOLE_VARINT = re.compile(rb"[\x80-\xff]{0,9}[\x00-\x7f]", re.DOTALL)


class BadMessage(BadParameter):
    """Bytes that are not the message which they should be."""


@dataclass(slots=True)
class FieldBudget:
    """How many fields may still be read. They are read one by one, so their number is what a message costs."""

    left: int

    def take(self) -> None:
        """One more. Raises `BadMessage` if that is one too many."""
        if self.left == 0:
            raise BadMessage("the read request has too many fields", remedy="Ask for less in one request")
        self.left -= 1


@dataclass(frozen=True, slots=True)
class Field:
    """One field: a number if it is a varint, bytes if it is text or a message, neither for a type that we don't use."""

    message: str
    number: int
    varint: int | None
    content: bytes | None

    def as_int64(self) -> int:
        """The number with its sign."""
        unsigned = self.as_uint64()
        return unsigned - (1 << 64) if unsigned >> 63 else unsigned

    def as_uint64(self) -> int:
        """The number as it was sent."""
        if self.varint is None:
            raise self._of_another_type("a number")
        return self.varint

    def as_bytes(self) -> bytes:
        """A message inside."""
        if self.content is None:
            raise self._of_another_type("bytes")
        return self.content

    def as_text(self) -> str:
        """A text."""
        try:
            return self.as_bytes().decode()
        except UnicodeDecodeError as error:
            raise BadMessage(f"field {self.number} of a {self.message} is not UTF-8: {error.reason}") from error

    def as_numbers(self, budget: FieldBudget) -> tuple[int, ...]:
        """The numbers of a repeated field: packed, as encoders do today, or one by itself. Each counts as a field."""
        if self.varint is not None:
            return (self.varint,)
        numbers, packed, at = [], self.as_bytes(), 0
        while at < len(packed):
            budget.take()
            number, at = _varint(packed, at, self.message)
            numbers.append(number)
        return tuple(numbers)

    def _of_another_type(self, wanted: str) -> BadMessage:
        return BadMessage(f"field {self.number} of a {self.message} is not {wanted}")


def read_fields(message: bytes, name: str, budget: FieldBudget) -> Iterator[Field]:
    """The fields of a message in their order. Raises `BadMessage` at the first that is broken."""
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
    """A number and the position behind it."""
    found = _WHOLE_VARINT.match(message, at)
    if found is None:
        raise BadMessage(f"a {name} has a number at byte {at} that is cut off, or longer than {_MAX_VARINT} bytes")
    value = 0
    for place, byte in enumerate(found.group()):
        value |= (byte & 0x7F) << (7 * place)
    return value & 0xFFFF_FFFF_FFFF_FFFF, found.end()

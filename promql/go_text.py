"""Text and numbers in Go's format, which Prometheus' messages and formatted queries use."""

import math
import re
from decimal import Decimal

_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = re.compile(r"[ !#-\[\]-~]*")


def quoted(text: str) -> str:
    """In double quotes, with Go's escapes for non-printable characters."""
    if _PLAIN.fullmatch(text):
        return f'"{text}"'
    return '"' + "".join([_escaped(character, '"') for character in text]) + '"'


def quoted_character(character: str) -> str:
    """In single quotes. The empty text means the end of the input, which Go shows as U+FFFD."""
    return f"'{_escaped(character or chr(0xFFFD), chr(39))}'"


def shortened(text: str) -> str:
    """Quoted and truncated after ten characters."""
    return f"{quoted(text[:10])}..." if len(text.encode(errors="surrogatepass")) > 10 else quoted(text)


def as_utf8(text: str) -> str:
    """With U+FFFD in place of each byte that is not UTF-8, as in Go's JSON encoding."""
    return _SURROGATE.sub(chr(0xFFFD), text)


def is_utf8(text: str) -> bool:
    """Whether it has no lone surrogates, which stand for bytes that are not UTF-8."""
    return _SURROGATE.search(text) is None


def plain_number(value: float) -> str:
    """Go's format `f` with the fewest digits that parse back to the same number; never with an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    written = repr(value)
    digits, _, exponent = written.partition("e")
    if exponent:
        return _without_exponent(digits, int(exponent))
    return digits.removesuffix(".0")


def short_number(value: float) -> str:
    """Go's `%g`: the fewest digits that parse back to the same number, and an exponent from a million on."""
    if not math.isfinite(value) or not value:
        return plain_number(value)
    number = Decimal(repr(value)).normalize()
    if -4 <= number.adjusted() < 6:
        return f"{number:f}"
    digits = "".join(map(str, number.as_tuple().digits))
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{'-' if value < 0 else ''}{digits[0]}{fraction}e{number.adjusted():+03d}"


def _without_exponent(digits: str, exponent: int) -> str:
    sign = "-" if digits.startswith("-") else ""
    whole, _, fraction = digits.removeprefix("-").partition(".")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - len(whole))}{whole}{fraction}"
    return f"{sign}{whole}{fraction}{'0' * (exponent - len(fraction))}"


def _escaped(character: str, quote: str) -> str:
    if character == quote:
        return "\\" + character
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

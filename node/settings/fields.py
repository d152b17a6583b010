"""Kinds of values that settings have, each with a check that says what would be right.

Each check takes what TOML or an environment variable gives: a number may come as a number or as its digits, a list as
a list or as text with commas.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from pydantic import PlainValidator

from strandline.node.settings.findings import nonsense, suggestion
from strandline.node.settings.units import ByteSize, Duration

Quantity = TypeVar("Quantity", Duration, ByteSize)

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?", re.ASCII)


def choice(literal: Any) -> PlainValidator:
    """One of the words of a `Literal`, in any case."""
    words: tuple[str, ...] = get_args(literal)
    folded = {word.lower(): word for word in words}

    def check(value: object) -> str:
        if isinstance(value, str) and value.strip().lower() in folded:
            return folded[value.strip().lower()]
        listed = "One of " + ", ".join(word or 'nothing ("")' for word in words)
        near = suggestion(value, words) if isinstance(value, str) else ""
        raise nonsense("is not one of the known words", f"{listed}. {near}".strip())

    return PlainValidator(check)


def between(kind: type[Quantity], low: str, high: str | None = None) -> PlainValidator:
    """A duration or a size within bounds."""
    return PlainValidator(_bounds(kind, low, high))


def between_or_none(kind: type[Quantity], low: str, high: str | None = None) -> PlainValidator:
    """The same, or nothing for the empty text."""
    within = _bounds(kind, low, high)
    return PlainValidator(lambda value: None if value is None or value == "" else within(value))


def word_or_between(literal: Any, kind: type[Quantity], low: str, high: str | None = None) -> PlainValidator:
    """One of the words of a `Literal`, in any case, or else a duration or a size within bounds."""
    words: tuple[str, ...] = get_args(literal)
    within = _bounds(kind, low, high)

    def check(value: object) -> str | Quantity:
        if isinstance(value, kind):
            return within(value)
        if isinstance(value, str) and value.strip().lower() in words:
            return value.strip().lower()
        try:
            kind.parse(value)
        except ValueError:
            near = suggestion(value, words) if isinstance(value, str) else ""
            remedy = f"One of {', '.join(words)}; or: {kind.hint()}. {near}".strip()
            raise nonsense(f"is neither one of the known words nor a {kind.WHAT}", remedy) from None
        return within(value)

    return PlainValidator(check)


def _bounds(kind: type[Quantity], low: str, high: str | None) -> Callable[[object], Quantity]:
    least = kind.parse(low)
    most = kind.parse(high) if high is not None else None

    def check(value: object) -> Quantity:
        try:
            quantity = value if isinstance(value, kind) else kind.parse(value)
        except ValueError as error:
            raise nonsense(f"is {error}", kind.hint()) from None
        if quantity < least:
            raise nonsense(f"is below {least}", f"At least {least}")
        if most is not None and quantity > most:
            raise nonsense(f"is above {most}", f"At most {most}")
        return quantity

    return check


def whole_number(low: int, high: int) -> PlainValidator:
    """A whole number within bounds."""
    right = f"A whole number from {low} to {high}"

    def check(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip(), re.ASCII):
            value = int(value)
        # TOML's true is Python's 1, and nobody means that.
        if not isinstance(value, int) or isinstance(value, bool):
            raise nonsense("is not a whole number", right)
        if not low <= value <= high:
            raise nonsense(f"is not between {low} and {high}", right)
        return value

    return PlainValidator(check)


def fraction(low: float, high: float) -> PlainValidator:
    """A number within bounds, which may have a fraction."""
    right = f"A number from {low:g} to {high:g}"

    def check(value: object) -> float:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value.strip(), re.ASCII):
            value = float(value)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise nonsense("is not a number", right)
        # TOML has nan, which lies between nothing.
        if not low <= value <= high:
            raise nonsense(f"is not between {low:g} and {high:g}", right)
        return float(value)

    return PlainValidator(check)


def _yes_or_no(value: object) -> bool:
    words = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    if isinstance(value, bool):
        return value
    raise nonsense("is neither true nor false", "true or false")


yes_or_no = PlainValidator(_yes_or_no)


def text_like(pattern: str, what: str, remedy: str) -> PlainValidator:
    """Text that matches the whole of a pattern."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: object) -> str:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            raise nonsense(what, remedy)
        return value

    return PlainValidator(check)


def addresses(*, default_port: bool) -> PlainValidator:
    """One or more servers, as "host:port", or as "host" too where a default port applies."""
    example = '"host-1:9092", "host-2:9092"' if not default_port else '"host-1", "host-2:9042"'
    right = f"A list such as [{example}], or the same as one text with commas"

    def check(value: object) -> tuple[str, ...]:
        items: object = [item for item in value.split(",") if item.strip()] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise nonsense("is not a list of servers", right)
        if not items:
            raise nonsense("names no server", right)
        return tuple(_checked_address(item.strip(), right, default_port=default_port) for item in items)

    return PlainValidator(check)


# Without a user or a password: what the settings say is shown and logged.
_URL = re.compile(r"https?://[^\s@/?#]+(/[^\s?#]*)?(\?[^\s#]*)?", re.ASCII)
_NO_URL = "is not an http or https URL without a user"


def url_or_nothing(right: str) -> PlainValidator:
    """A URL, or an empty text."""

    def check(value: object) -> str:
        if not isinstance(value, str) or (value and _URL.fullmatch(value) is None):
            raise nonsense(_NO_URL, right, hidden=True)
        return value

    return PlainValidator(check)


def urls(right: str) -> PlainValidator:
    """Any number of URLs, as a list or as one text with commas."""

    def check(value: object) -> tuple[str, ...]:
        items: object = [item for item in value.split(",") if item.strip()] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise nonsense("is not a list of URLs", right)
        found = tuple(item.strip() for item in items)
        if not all(_URL.fullmatch(item) for item in found):
            raise nonsense(_NO_URL, right, hidden=True)
        return found

    return PlainValidator(check)


def _checked_address(address: str, right: str, *, default_port: bool) -> str:
    if "@" in address or "/" in address:
        # Perhaps a URL with a user and a password in it, so it is not shown.
        remedy = f"{right}, without a scheme, user or password; those have settings of their own"
        raise nonsense("is not host and port alone", remedy, hidden=True)
    try:
        _, port = split_address(address)
    except ValueError as error:
        raise nonsense(str(error), right) from None
    if port is None and not default_port:
        raise nonsense("names a server without a port", right)
    return address


def split_address(address: str) -> tuple[str, int | None]:
    """Host and port of "host", "host:port", "::1" or "[::1]:port"; raises `ValueError` if it is none of these."""
    if _is_ipv6(address):
        return address, None
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, ""
    bracketed = host.startswith("[") and host.endswith("]") and _is_ipv6(host[1:-1])
    if not bracketed and _HOST.fullmatch(host) is None:
        raise ValueError("names a server by something that is no host name or address")
    if colon and not address.endswith("]") and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError("names a server with a port that is not from 1 to 65535")
    return host[1:-1] if bracketed else host, int(port) if port else None


def _listen_address(value: object) -> str:
    right = 'An address of this machine and a port, such as "127.0.0.1:9460", "[::1]:9460" or "0.0.0.0:9460"'
    if not isinstance(value, str):
        raise nonsense("is not an address and a port", right)
    host, colon, port = value.strip().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise nonsense("is not an address and a port from 0 to 65535", right)
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]") if host.startswith("[") else host)
    except ValueError:
        if host != "localhost":
            raise nonsense("names an address that is none", right) from None
    return value.strip()


listen_address = PlainValidator(_listen_address)


def split_listen_address(address: str) -> tuple[str, int]:
    """Host and port of a checked address to listen on."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches a checked address to listen on."""
    host, _ = split_listen_address(address)
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


_SHARD_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", re.ASCII)


def _shard_list(value: object) -> str:
    try:
        listed_shards(str(value), 0)
    except ValueError as error:
        raise nonsense(str(error), 'all, or numbers and ranges such as "0-3, 7"') from None
    return str(value).strip()


shard_list = PlainValidator(_shard_list)


def listed_shards(written: str, partitions: int) -> tuple[int, ...]:
    """The shards that a list names, in order, each once; all that there are for "all". Raises `ValueError`."""
    if written.strip().lower() == "all":
        return tuple(range(partitions))
    found: set[int] = set()
    for part in written.split(","):
        matched = _SHARD_RANGE.fullmatch(part.strip())
        if matched is None:
            raise ValueError("is no list of shards")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        if last < first:
            raise ValueError("has a range that ends before it begins")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True

"""Validators for the kinds of values that settings have. Each reports which values are allowed.

Each validator accepts values from TOML and from environment variables: a number may be a number or its digits, and a
list may be a list or text with commas.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Any, TypeVar, get_args

from pydantic import PlainValidator

from strandline.node.settings.findings import invalid, suggestion
from strandline.node.settings.units import ByteSize, Duration

Quantity = TypeVar("Quantity", Duration, ByteSize)

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\.?", re.ASCII)


def choice(literal: Any) -> PlainValidator:
    """One of the values of a `Literal`, regardless of case."""
    choices: tuple[str, ...] = get_args(literal)
    folded = {value.lower(): value for value in choices}

    def check(value: object) -> str:
        if isinstance(value, str) and value.strip().lower() in folded:
            return folded[value.strip().lower()]
        listed = "One of " + ", ".join(allowed or 'nothing ("")' for allowed in choices)
        near = suggestion(value, choices) if isinstance(value, str) else ""
        raise invalid("is not one of the allowed values", f"{listed}. {near}".strip())

    return PlainValidator(check)


def between(kind: type[Quantity], low: str, high: str | None = None) -> PlainValidator:
    """A duration or a size within bounds."""
    return PlainValidator(_bounds(kind, low, high))


def between_or_none(kind: type[Quantity], low: str, high: str | None = None) -> PlainValidator:
    """The same, or None for an empty text."""
    within = _bounds(kind, low, high)
    return PlainValidator(lambda value: None if value is None or value == "" else within(value))


def choice_or_between(literal: Any, kind: type[Quantity], low: str, high: str | None = None) -> PlainValidator:
    """One of the values of a `Literal`, regardless of case, or a duration or a size within bounds."""
    choices: tuple[str, ...] = get_args(literal)
    within = _bounds(kind, low, high)

    def check(value: object) -> str | Quantity:
        if isinstance(value, kind):
            return within(value)
        if isinstance(value, str) and value.strip().lower() in choices:
            return value.strip().lower()
        try:
            kind.parse(value)
        except ValueError:
            near = suggestion(value, choices) if isinstance(value, str) else ""
            remedy = f"One of {', '.join(choices)}; or: {kind.hint()}. {near}".strip()
            raise invalid(f"is neither one of the allowed values nor a {kind.WHAT}", remedy) from None
        return within(value)

    return PlainValidator(check)


def _bounds(kind: type[Quantity], low: str, high: str | None) -> Callable[[object], Quantity]:
    minimum = kind.parse(low)
    maximum = kind.parse(high) if high is not None else None

    def check(value: object) -> Quantity:
        try:
            quantity = value if isinstance(value, kind) else kind.parse(value)
        except ValueError as error:
            raise invalid(f"is {error}", kind.hint()) from None
        if quantity < minimum:
            raise invalid(f"is below {minimum}", f"At least {minimum}")
        if maximum is not None and quantity > maximum:
            raise invalid(f"is above {maximum}", f"At most {maximum}")
        return quantity

    return check


def integer(low: int, high: int) -> PlainValidator:
    """An integer within bounds."""
    right = f"An integer from {low} to {high}"

    def check(value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value.strip(), re.ASCII):
            value = int(value)
        # In Python, True is an int.
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid("is not an integer", right)
        if not low <= value <= high:
            raise invalid(f"is not between {low} and {high}", right)
        return value

    return PlainValidator(check)


def fraction(low: float, high: float) -> PlainValidator:
    """A number within bounds, which may have a fraction."""
    right = f"A number from {low:g} to {high:g}"

    def check(value: object) -> float:
        if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value.strip(), re.ASCII):
            value = float(value)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise invalid("is not a number", right)
        # Also rejects TOML's nan.
        if not low <= value <= high:
            raise invalid(f"is not between {low:g} and {high:g}", right)
        return float(value)

    return PlainValidator(check)


def _boolean(value: object) -> bool:
    values = {"true": True, "false": False}
    if isinstance(value, str) and value.strip().lower() in values:
        return values[value.strip().lower()]
    if isinstance(value, bool):
        return value
    raise invalid("is neither true nor false", "true or false")


boolean = PlainValidator(_boolean)


def text_like(pattern: str, what: str, remedy: str) -> PlainValidator:
    """Text that fully matches a pattern."""
    compiled = re.compile(pattern, re.ASCII)

    def check(value: object) -> str:
        if not isinstance(value, str) or compiled.fullmatch(value) is None:
            raise invalid(what, remedy)
        return value

    return PlainValidator(check)


def addresses(*, default_port: bool) -> PlainValidator:
    """One or more servers as "host:port", or also as "host" if there is a default port."""
    example = '"host-1:9092", "host-2:9092"' if not default_port else '"host-1", "host-2:9042"'
    right = f"A list such as [{example}], or the same as one text with commas"

    def check(value: object) -> tuple[str, ...]:
        items: object = [item for item in value.split(",") if item.strip()] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise invalid("is not a list of servers", right)
        if not items:
            raise invalid("names no server", right)
        return tuple(_checked_address(item.strip(), right, default_port=default_port) for item in items)

    return PlainValidator(check)


# Without a user or a password, because settings are shown and logged.
_URL = re.compile(r"https?://[^\s@/?#]+(/[^\s?#]*)?(\?[^\s#]*)?", re.ASCII)
_NO_URL = "is not an http or https URL without a user"


def optional_url(right: str) -> PlainValidator:
    """A URL, or an empty text."""

    def check(value: object) -> str:
        if not isinstance(value, str) or (value and _URL.fullmatch(value) is None):
            raise invalid(_NO_URL, right, hidden=True)
        return value

    return PlainValidator(check)


def urls(right: str) -> PlainValidator:
    """Any number of URLs, as a list or as one text with commas."""

    def check(value: object) -> tuple[str, ...]:
        items: object = [item for item in value.split(",") if item.strip()] if isinstance(value, str) else value
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise invalid("is not a list of URLs", right)
        found = tuple(item.strip() for item in items)
        if not all(_URL.fullmatch(item) for item in found):
            raise invalid(_NO_URL, right, hidden=True)
        return found

    return PlainValidator(check)


def _checked_address(address: str, right: str, *, default_port: bool) -> str:
    if "@" in address or "/" in address:
        # It may be a URL with a user and a password, so it is not shown.
        remedy = f"{right}, without a scheme, user or password; those have settings of their own"
        raise invalid("is not host and port alone", remedy, hidden=True)
    try:
        _, port = split_address(address)
    except ValueError as error:
        raise invalid(str(error), right) from None
    if port is None and not default_port:
        raise invalid("names a server without a port", right)
    return address


def split_address(address: str) -> tuple[str, int | None]:
    """The host and port of "host", "host:port", "::1" or "[::1]:port". Raises `ValueError` for anything else."""
    if _is_ipv6(address):
        return address, None
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, ""
    bracketed = host.startswith("[") and host.endswith("]") and _is_ipv6(host[1:-1])
    if not bracketed and _HOST.fullmatch(host) is None:
        raise ValueError("names a server with an invalid host name or address")
    if colon and not address.endswith("]") and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError("names a server with a port that is not from 1 to 65535")
    return host[1:-1] if bracketed else host, int(port) if port else None


def _listen_address(value: object) -> str:
    right = 'An address of this machine and a port, such as "127.0.0.1:9460", "[::1]:9460" or "0.0.0.0:9460"'
    if not isinstance(value, str):
        raise invalid("is not an address and a port", right)
    host, colon, port = value.strip().rpartition(":")
    if not colon or not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise invalid("is not an address and a port from 0 to 65535", right)
    try:
        ipaddress.ip_address(host.removeprefix("[").removesuffix("]") if host.startswith("[") else host)
    except ValueError:
        if host != "localhost":
            raise invalid("names an invalid address", right) from None
    return value.strip()


listen_address = PlainValidator(_listen_address)


def split_listen_address(address: str) -> tuple[str, int]:
    """The host and port of a valid listen address."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_loopback(address: str) -> bool:
    """Whether a valid listen address can be reached from this machine only."""
    host, _ = split_listen_address(address)
    return host == "localhost" or ipaddress.ip_address(host).is_loopback


_SHARD_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", re.ASCII)


def _shard_list(value: object) -> str:
    try:
        parse_shard_list(str(value), 0)
    except ValueError as error:
        raise invalid(str(error), 'all, or numbers and ranges such as "0-3, 7"') from None
    return str(value).strip()


shard_list = PlainValidator(_shard_list)


def parse_shard_list(written: str, partitions: int) -> tuple[int, ...]:
    """The shards of a list such as "0-3, 7", sorted and without duplicates. "all" means all of `partitions`. Raises
    `ValueError`.
    """
    if written.strip().lower() == "all":
        return tuple(range(partitions))
    found: set[int] = set()
    for part in written.split(","):
        matched = _SHARD_RANGE.fullmatch(part.strip())
        if matched is None:
            raise ValueError("is not a list of shards")
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

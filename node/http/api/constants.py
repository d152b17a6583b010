"""Arithmetic with numbers alone, as PromQL has it: `1+1` is how Grafana asks whether somebody is there."""

import re
from dataclasses import dataclass

import numpy as np

_LONGEST = 200
_TOKEN = re.compile(
    r"[ \t\r\n]*(?:(0[xX][0-9A-Fa-f]{1,13}|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[A-Za-z]+)|([-+*/%^()]))"
)
_WORDS = {"inf": np.inf, "nan": np.nan}
_DEEPEST = 30


class NotConstantError(ValueError):
    """Text that is not made of numbers and operators alone."""


def constant_value(written: str) -> float:
    """The value; raises `NotConstantError`."""
    if len(written) > _LONGEST:
        raise NotConstantError
    parser = _Parser(_tokens(written))
    with np.errstate(all="ignore"):
        value = parser.sum(0)
    if parser.tokens:
        raise NotConstantError
    return float(value)


def _tokens(written: str) -> list[str | np.float64]:
    """In reverse order, so that the next one is the last."""
    tokens: list[str | np.float64] = []
    position, end = 0, len(written.rstrip())
    while position < end:
        token = _TOKEN.match(written, position)
        if token is None:
            raise NotConstantError
        tokens.append(token[2] or _number(token[1]))
        position = token.end()
    return tokens[::-1]


def _number(token: str) -> np.float64:
    if token[0].isalpha():
        if token.lower() not in _WORDS:
            raise NotConstantError
        return np.float64(_WORDS[token.lower()])
    return np.float64(int(token, 16) if token[:2].lower() == "0x" else float(token))


@dataclass(slots=True)
class _Parser:
    tokens: list[str | np.float64]

    def _next(self, operators: str) -> str:
        """The next token if it is one of these, or the empty text."""
        token = self.tokens[-1] if self.tokens else ""
        return str(self.tokens.pop()) if isinstance(token, str) and token and token in operators else ""

    def sum(self, depth: int) -> np.float64:
        value = self._product(depth)
        while operator := self._next("+-"):
            other = self._product(depth)
            value = value + other if operator == "+" else value - other
        return value

    def _product(self, depth: int) -> np.float64:
        value = self._signed(depth)
        while operator := self._next("*/%"):
            other = self._signed(depth)
            match operator:
                case "*":
                    value = value * other
                case "/":
                    value = value / other
                case _:
                    value = np.float64(np.fmod(value, other))
        return value

    def _signed(self, depth: int) -> np.float64:
        """A sign binds less than a power: -2^2 is -4."""
        if depth > _DEEPEST:
            raise NotConstantError
        if operator := self._next("+-"):
            value = self._signed(depth + 1)
            return -value if operator == "-" else value
        value = self._single(depth)
        if self._next("^"):
            value = np.float64(np.power(value, self._signed(depth + 1)))
        return value

    def _single(self, depth: int) -> np.float64:
        if self._next("("):
            value = self.sum(depth + 1)
            if not self._next(")"):
                raise NotConstantError
            return value
        if not self.tokens or isinstance(self.tokens[-1], str):
            raise NotConstantError
        return np.float64(self.tokens.pop())

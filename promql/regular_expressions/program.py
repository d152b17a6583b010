"""Compiles an expression to a program for the kernel, and runs it over a column of texts."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from strandline.arrays import I64s
from strandline.promql.kernels.regular_expressions import find_matches
from strandline.promql.regular_expressions.syntax import (
    Alternatives,
    Assertion,
    Characters,
    Group,
    InvalidRegularExpression,
    Node,
    Repetition,
    Sequence,
    Tree,
    parse,
)

# Matching a text takes time in proportion to its length times the number of instructions.
_MAX_INSTRUCTIONS: Final = 10_000


class Operation(IntEnum):
    """Operations of instructions. The kernel uses the same numbers."""

    MATCH = 0
    CHARACTERS = 1
    """Match a character of the ranges from `first` up to, not including, `second`."""
    SPLIT = 2
    """Continue at `first`, or with lower priority at `second`."""
    JUMP = 3
    SAVE = 4
    ASSERT = 5


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, as rows of an operation and two operands, and the ranges of characters that they reference."""

    code: I64s
    ranges: I64s
    names: tuple[str, ...]

    def find(self, texts: list[str]) -> I64s:
        """A row for each text: start and end of its first match, then of each group; -1 for none."""
        code_points = np.frombuffer(bytearray("".join(texts).encode("utf-32-le")), dtype=np.uint32)
        offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        found = np.full((len(texts), 2 * len(self.names)), -1, dtype=np.int64)
        find_matches(code_points, offsets, self.code, self.ranges, found)
        return found


def compile_expression(expression: str) -> Program:
    """Compile an expression. Raises `InvalidRegularExpression`."""
    tree = parse(expression)
    return _Compiler().compile(tree)


@dataclass(slots=True)
class _Compiler:
    code: list[tuple[int, int, int]] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def compile(self, tree: Tree) -> Program:
        self._emit(Operation.SAVE, 0)
        self._add(tree.root)
        self._emit(Operation.SAVE, 1)
        self._emit(Operation.MATCH)
        return Program(_matrix(self.code, 3), _matrix(self.ranges, 2), tree.names)

    def _emit(self, operation: Operation, first: int = 0, second: int = 0) -> int:
        if len(self.code) >= _MAX_INSTRUCTIONS:
            raise InvalidRegularExpression(f"the expression needs more than {_MAX_INSTRUCTIONS} instructions")
        self.code.append((operation, first, second))
        return len(self.code) - 1

    def _split(self, here: int, inside: int, after: int, *, is_greedy: bool) -> None:
        """Make the instruction at `here` a split, whose first branch has priority."""
        self.code[here] = (Operation.SPLIT, *((inside, after) if is_greedy else (after, inside)))

    def _add(self, node: Node) -> None:
        match node:
            case Characters(ranges):
                self._emit(Operation.CHARACTERS, len(self.ranges), len(self.ranges) + len(ranges))
                self.ranges += ranges
            case Assertion():
                self._emit(Operation.ASSERT, node.value)
            case Sequence(parts):
                for part in parts:
                    self._add(part)
            case Group(inner, number):
                self._emit(Operation.SAVE, 2 * number)
                self._add(inner)
                self._emit(Operation.SAVE, 2 * number + 1)
            case Alternatives(options):
                self._add_options(options)
            case Repetition():
                self._add_repetition(node)

    def _add_options(self, options: tuple[Node, ...]) -> None:
        ends = []
        for option in options[:-1]:
            choice = self._emit(Operation.SPLIT)
            self._add(option)
            ends.append(self._emit(Operation.JUMP))
            self._split(choice, choice + 1, len(self.code), is_greedy=True)
        self._add(options[-1])
        for end in ends:
            self.code[end] = (Operation.JUMP, len(self.code), 0)

    def _add_repetition(self, node: Repetition) -> None:
        inner, minimum, maximum, is_greedy = node.inner, node.minimum, node.maximum, node.is_greedy
        if maximum is None:
            for _ in range(minimum - 1):
                self._add(inner)
            if minimum == 0 and not _may_be_empty(inner):
                choice = self._emit(Operation.SPLIT)
                self._add(inner)
                self._emit(Operation.JUMP, choice)
                self._split(choice, choice + 1, len(self.code), is_greedy=is_greedy)
                return
            # x* of an x that may match the empty text is (x+)?: that gives alternatives the same priority as in Go.
            choice = self._emit(Operation.SPLIT) if minimum == 0 else -1
            start = len(self.code)
            self._add(inner)
            again = self._emit(Operation.SPLIT)
            self._split(again, start, len(self.code), is_greedy=is_greedy)
            if choice >= 0:
                self._split(choice, start, len(self.code), is_greedy=is_greedy)
            return
        for _ in range(minimum):
            self._add(inner)
        choices = []
        for _ in range(maximum - minimum):
            choices.append(self._emit(Operation.SPLIT))
            self._add(inner)
        for choice in choices:
            self._split(choice, choice + 1, len(self.code), is_greedy=is_greedy)


def _may_be_empty(node: Node) -> bool:
    match node:
        case Characters():
            return False
        case Assertion():
            return True
        case Sequence(parts):
            return all(map(_may_be_empty, parts))
        case Alternatives(options):
            return any(map(_may_be_empty, options))
        case Group(inner):
            return _may_be_empty(inner)
        case Repetition(inner, minimum, _):
            return minimum == 0 or _may_be_empty(inner)


def _matrix(rows: Iterable[tuple[int, ...]], width: int) -> npt.NDArray[np.int64]:
    return np.array(list(rows), dtype=np.int64).reshape(-1, width)

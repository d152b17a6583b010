"""Random PromQL expressions that parse and have valid types, over given metrics and labels: for properties of the
language, and for comparing two engines.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from strandline.promql.expressions import Aggregator, Operator
from strandline.promql.functions import FUNCTIONS, Function
from strandline.promql.value_types import ValueType

_ARITHMETIC = ("+", "-", "*", "/", "%", "^", "atan2")
_COMPARISONS = tuple(operator.value for operator in Operator if operator.is_comparison)
_SETS = tuple(operator.value for operator in Operator if operator.is_set)
_WITH_SCALAR = (Aggregator.TOPK, Aggregator.BOTTOMK, Aggregator.QUANTILE)
_PLAIN_AGGREGATORS = tuple(
    aggregator
    for aggregator in Aggregator
    if aggregator not in (*_WITH_SCALAR, Aggregator.COUNT_VALUES, Aggregator.LIMITK, Aggregator.LIMIT_RATIO)
)
_NUMBERS = ("0", "1", "2", "0.5", "-1", "10", "1e3", "0x1F", "3.25", "5m", "Inf", "-Inf", "NaN")
_PATTERNS = (".*", ".+", "a|b", "[a-c].*", "(x|y)z?", "")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The elements of expressions. `labels` gives the values to match a label with; `moments` are for `@`, in seconds;
    `durations` are for ranges, steps and offsets.
    """

    metrics: Sequence[str] = ("requests_total", "memory_bytes", "job:rate5m", "my.metric", "latency_bucket")
    labels: Mapping[str, Sequence[str]] = field(
        default_factory=lambda: {"job": ("a", "b"), "le": ("0.5", "+Inf"), "code": ("200",), "a.b": ("x y", 'q"\\')}
    )
    durations: Sequence[str] = ("15s", "1m", "5m", "90", "1h30m", "250ms")
    moments: Sequence[str] = ("1700000000", "1700000123.456", "start()", "end()", "-5")
    label_values: Sequence[str] = ("new", "a\nb", "ü", "")


@dataclass(slots=True)
class ExpressionGenerator:
    """Expressions from a random source; the same source gives the same expressions. `depth` limits nesting."""

    random: Random
    words: Vocabulary = field(default_factory=Vocabulary)
    duration_arithmetic: bool = True

    def expression(self, depth: int = 4) -> str:
        """An expression of any type that a query may have."""
        kind = self.random.choices(("vector", "scalar", "matrix", "string"), (80, 12, 6, 2))[0]
        match kind:
            case "vector":
                return self.vector(depth)
            case "scalar":
                return self.scalar(depth)
            case "matrix":
                return self.matrix(depth)
            case _:
                return self._string()

    def vector(self, depth: int) -> str:
        """An instant vector."""
        if depth <= 0 or self.random.random() < 0.15:
            return self._modified(self._selector())
        make = self.random.choices((self._call, self._aggregation, self._binary, self._enclosed), (4, 3, 3, 1))[0]
        return make(depth - 1)

    def scalar(self, depth: int) -> str:
        """A scalar."""
        if depth <= 0 or self.random.random() < 0.4:
            return self.random.choice(_NUMBERS)
        match self.random.randrange(5):
            case 0:
                return f"scalar({self.vector(depth - 1)})"
            case 1:
                return self.random.choice(("time()", "pi()"))
            case 2:
                return f"({self.scalar(depth - 1)})"
            case 3:
                comparison = self.random.choice(_COMPARISONS)
                return f"{self.scalar(depth - 1)} {comparison} bool {self.scalar(depth - 1)}"
            case _:
                return f"{self.scalar(depth - 1)} {self.random.choice(_ARITHMETIC)} {self.scalar(depth - 1)}"

    def matrix(self, depth: int) -> str:
        """A range vector: a selector with a range, or a subquery."""
        if depth <= 0 or self.random.random() < 0.7:
            return self._modified(f"{self._selector()}[{self._duration()}]")
        step = self._duration() if self.random.random() < 0.7 else ""
        length = self._duration()
        # Prometheus' lexer requires a literal before the colon.
        length = length if any(map(str.isdigit, length)) else f"{length} + 1s"
        return self._modified(f"({self.vector(depth - 1)})[{length}:{step}]")

    def _enclosed(self, depth: int) -> str:
        return f"({self.vector(depth)})" if self.random.random() < 0.7 else f"-{self._operand(depth)}"

    def _call(self, depth: int) -> str:
        function = self.random.choice(_VECTOR_FUNCTIONS)
        parameters = list(function.parameters)
        if function.optional and self.random.random() < 0.5:
            parameters = parameters[: -function.optional]
        if function.is_variadic:
            parameters += parameters[-1:] * self.random.randrange(3)
        return f"{function.name}({', '.join([self._argument(function, wanted, depth) for wanted in parameters])})"

    def _argument(self, function: Function, wanted: ValueType, depth: int) -> str:
        match wanted:
            case ValueType.VECTOR:
                return self.vector(depth)
            case ValueType.SCALAR:
                return self.scalar(depth)
            case ValueType.MATRIX:
                return self.matrix(depth)
            case _:
                return self._label_string() if function.name.startswith("label_") else self._string()

    def _aggregation(self, depth: int) -> str:
        match self.random.randrange(6):
            case 0:
                name = self.random.choice(_WITH_SCALAR)
                body = f"({self.scalar(min(depth, 1))}, {self.vector(depth)})"
            case 1:
                name, body = Aggregator.COUNT_VALUES, f'("value", {self.vector(depth)})'
            case _:
                name, body = self.random.choice(_PLAIN_AGGREGATORS), f"({self.vector(depth)})"
        if self.random.random() < 0.4:
            return f"{name}{body}"
        grouping = f"{self.random.choice(('by', 'without'))} ({self._labels()})"
        return f"{name} {grouping} {body}" if self.random.random() < 0.7 else f"{name} {body} {grouping}"

    def _binary(self, depth: int) -> str:
        match self.random.randrange(4):
            case 0:
                operator = self.random.choice((*_ARITHMETIC, *_COMPARISONS))
                vector, scalar = self._operand(depth), self._scalar_operand(depth)
                operator += self._bool(operator)
                sides = [vector, scalar]
                self.random.shuffle(sides)
                # In parentheses: otherwise a neighbouring operator on vectors would get the scalar.
                return f"({sides[0]} {operator} {sides[1]})"
            case 1:
                operator = self.random.choice(_SETS)
                return f"{self._operand(depth)} {operator} {self._on()}{self._operand(depth)}"
            case _:
                operator = self.random.choice((*_ARITHMETIC, *_COMPARISONS))
                matching = self._on()
                if matching and self.random.random() < 0.4:
                    # Never a label of the previous list, which would be refused.
                    matching += f"group_{self.random.choice(('left', 'right'))} ({self.random.choice(('', 'extra'))}) "
                return f"{self._operand(depth)} {operator}{self._bool(operator)} {matching}{self._operand(depth)}"

    def _operand(self, depth: int) -> str:
        """A vector, often in parentheses, so that precedence does not always decide."""
        vector = self.vector(depth)
        return f"({vector})" if self.random.random() < 0.6 else vector

    def _scalar_operand(self, depth: int) -> str:
        # In parentheses: a comparison of scalars that results from precedence would lack its bool.
        return f"({self.scalar(depth)})"

    def _bool(self, operator: str) -> str:
        return " bool" if operator in _COMPARISONS and self.random.random() < 0.4 else ""

    def _on(self) -> str:
        if self.random.random() < 0.4:
            return ""
        return f"{self.random.choice(('on', 'ignoring'))} ({self._labels()}) "

    def _labels(self) -> str:
        labels = self.random.sample(list(self.words.labels), self.random.randrange(len(self.words.labels)))
        return ", ".join([label if label.isidentifier() else _quoted(label) for label in labels])

    def _selector(self) -> str:
        metric = self.random.choice(self.words.metrics)
        labels = self.random.sample(list(self.words.labels), self.random.choice((0, 0, 1, 1, 2)))
        matchers = [self._matcher(label) for label in labels]
        if not metric.replace(":", "_").isidentifier():
            return f"{{{', '.join([_quoted(metric), *matchers])}}}"
        if self.random.random() < 0.05:
            return f"{{__name__=~{_quoted(metric + '.*')}}}"
        return f"{metric}{{{','.join(matchers)}}}" if matchers else metric

    def _matcher(self, label: str) -> str:
        operator = self.random.choice(("=", "=", "!=", "=~", "!~"))
        values = _PATTERNS if "~" in operator else self.words.labels[label]
        return f"{label if label.isidentifier() else _quoted(label)}{operator}{_quoted(self.random.choice(values))}"

    def _modified(self, selector: str) -> str:
        modifiers = []
        if self.random.random() < 0.15:
            modifiers.append(f" offset {self.random.choice(('', '-'))}{self.random.choice(self.words.durations)}")
        if self.random.random() < 0.1:
            modifiers.append(f" @ {self.random.choice(self.words.moments)}")
        self.random.shuffle(modifiers)
        return selector + "".join(modifiers)

    def _duration(self) -> str:
        literal = self.random.choice(self.words.durations)
        if not self.duration_arithmetic or self.random.random() < 0.85:
            return literal
        other = self.random.choice(self.words.durations)
        return self.random.choice(
            (
                f"{literal} + {other}",
                f"{literal} * 2",
                f"({literal} + {other}) / 2",
                f"max_of({literal}, step())",
                f"min_of(range() + {literal}, 1h)",
                f"{literal} % {other} + 1s",
                f"2 ^ 3 * {literal}",
                "step() + 1m",
            )
        )

    def _string(self) -> str:
        return _quoted(self.random.choice(self.words.label_values))

    def _label_string(self) -> str:
        """The name of a label: most strings in functions of labels are names, and all may be."""
        return _quoted(self.random.choice([label for label in self.words.labels if label.isidentifier()]))


def expressions(
    seed: int, count: int, *, words: Vocabulary | None = None, depth: int = 4, duration_arithmetic: bool = True
) -> Iterator[str]:
    """Expressions, the same ones for the same seed."""
    generator = ExpressionGenerator(Random(seed), words or Vocabulary(), duration_arithmetic)  # noqa: S311
    for _ in range(count):
        yield generator.expression(depth)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_VECTOR_FUNCTIONS = tuple(
    function for function in FUNCTIONS.values() if function.returns is ValueType.VECTOR and not function.is_experimental
)

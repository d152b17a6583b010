"""Collects the annotations of functions over range vectors, block by block."""

import numpy as np

from strandline.arrays import F64s
from strandline.index.key_bytes import KeyBytes, take_keys
from strandline.index.selectors import METRIC_NAME
from strandline.promql import annotations
from strandline.promql.annotations import NONE, Annotations
from strandline.promql.evaluation.rows import sample_counts
from strandline.promql.labels import distinct_texts, label_values
from strandline.promql.values import F64Matrix

_COUNTER_FUNCTIONS = frozenset({"rate", "increase"})
_QUANTILE = "quantile_over_time"


class AnnotationCollector:
    """Collects the annotations of one function. `name` is the metric name if all series have the same one."""

    def __init__(self, function: str, parameters: tuple[F64s, ...], name: str | None = None) -> None:
        self._quantiles = parameters[0] if function == _QUANTILE else None
        self._name = name
        self._checks_names = function in _COUNTER_FUNCTIONS and (name is None or not annotations.is_counter_name(name))
        self._names: dict[str, None] = {}
        self._invalid_quantiles = NONE

    def collect(self, values: F64Matrix, keys: KeyBytes | None = None) -> None:
        """Check a block of computed rows. `keys` are only needed if the metric name is not fixed."""
        if self._quantiles is not None:
            self._invalid_quantiles |= annotations.invalid_quantiles(self._quantiles, values)
        if self._checks_names:
            self._collect_names(values, keys)

    def _collect_names(self, values: F64Matrix, keys: KeyBytes | None) -> None:
        rows = np.flatnonzero(sample_counts(values))
        if not len(rows):
            return
        if self._name is not None:
            self._names[self._name] = None
            self._checks_names = False
        elif keys is not None:
            names = label_values(take_keys(keys, rows), METRIC_NAME)
            found = [names.text(position).decode() for position in distinct_texts(names)[1].tolist()]
            self._names |= dict.fromkeys(name for name in found if not annotations.is_counter_name(name))

    def annotations(self) -> Annotations:
        """The annotations so far."""
        return self._invalid_quantiles | Annotations(annotations.possible_non_counter(name) for name in self._names)

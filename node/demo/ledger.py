"""What was acknowledged, kept to be compared with what is found: pure, over columns."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from strandline.arrays import F64s, I64s, U64s
from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples as columns, in any order: the hash of the series' labels in two words, the time, the value."""

    key_high: U64s
    key_low: U64s
    time: I64s
    value: F64s

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def of(cls, columns: Columns) -> "Samples":
        """All samples of a decoded batch."""
        counts = np.diff(columns.first_sample)
        high, low = np.repeat(columns.key_high, counts), np.repeat(columns.key_low, counts)
        return cls(high, low, columns.time.copy(), columns.value.copy())

    @classmethod
    def together(cls, parts: "list[Samples]") -> "Samples":
        """Several as one."""
        if not parts:
            words = np.empty(0, dtype=np.uint64)
            return cls(words, words, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
        return cls(
            np.concatenate([part.key_high for part in parts]),
            np.concatenate([part.key_low for part in parts]),
            np.concatenate([part.time for part in parts]),
            np.concatenate([part.value for part in parts]),
        )

    def sorted(self) -> "Samples":
        """In the order of (series, time); what came later stays behind what came earlier."""
        order = np.lexsort((self.time, self.key_low, self.key_high))
        return Samples(self.key_high[order], self.key_low[order], self.time[order], self.value[order])


@dataclass(frozen=True, slots=True)
class Comparison:
    """How what was found compares with what was acknowledged, in samples.

    `lost` are acknowledged and not found; `doubled` are found more than once; `wrong` have another value; `foreign` are
    found and were never sent.
    """

    acknowledged: int
    found: int
    lost: int
    doubled: int
    wrong: int
    foreign: int

    @property
    def is_exact(self) -> bool:
        """Whether each is there once, as it was sent, and nothing else is."""
        return (self.lost, self.doubled, self.wrong, self.foreign) == (0, 0, 0, 0)


def compare(acknowledged: Samples, found: Samples) -> Comparison:
    """Compare sample by sample. One that was acknowledged twice, after a retry, counts once."""
    wanted, there = acknowledged.sorted(), found.sorted()
    # The last of equal ones is the latest.
    wanted = _taken(wanted, ~_equals_next(wanted))
    doubled = _equals_next(there)
    once = _taken(there, ~doubled)
    both = Samples.together([wanted, once])
    order = np.lexsort((both.time, both.key_low, both.key_high))
    ranked = Samples(both.key_high[order], both.key_low[order], both.time[order], both.value[order])
    met = np.flatnonzero(_equals_next(ranked))
    bits = ranked.value.view(np.uint64)
    return Comparison(
        acknowledged=len(wanted),
        found=len(there),
        lost=len(wanted) - len(met),
        doubled=int(doubled.sum()),
        wrong=int((bits[met] != bits[met + 1]).sum()),
        foreign=len(once) - len(met),
    )


class Ledger:
    """Remembers the samples of requests that were acknowledged."""

    def __init__(self) -> None:
        self._parts: list[Samples] = []

    def acknowledged(self, body: bytes) -> int:
        """A request, as it was sent, has its 2xx; how many samples that are."""
        part = Samples.of(decode_batch([body], Limits()))
        self._parts.append(part)
        return len(part)

    def samples(self) -> Samples:
        """All of them, in the order of their acknowledgement."""
        return Samples.together(self._parts)


def _equals_next(samples: Samples) -> npt.NDArray[np.bool_]:
    """Which of sorted samples have the series and time of the one behind them."""
    same = np.zeros(len(samples), dtype=np.bool_)
    if len(samples) > 1:
        same[:-1] = (
            (samples.key_high[1:] == samples.key_high[:-1])
            & (samples.key_low[1:] == samples.key_low[:-1])
            & (samples.time[1:] == samples.time[:-1])
        )
    return same


def _taken(samples: Samples, chosen: npt.NDArray[np.bool_]) -> Samples:
    return Samples(samples.key_high[chosen], samples.key_low[chosen], samples.time[chosen], samples.value[chosen])

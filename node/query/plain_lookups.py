"""Look-ups by the values of labels on the link, and their answers if few series match: in bytes that are made and read
by a few calls, since a message with fields and columns takes longer than to find one series.

A question has the link's prefix, the numbers of `_QUESTION`, a label, and selectors as `strandline.index.key_lookup`
packs them. An answer has the prefix, the number of series, and a list in JSON that is only passed on. Whatever has more
to say (many series, a warning, an error) is answered with a message.
"""

import struct
from dataclasses import dataclass

from strandline.index.documents import AskedOfKeys
from strandline.index.key_lookup import unpacked_selectors
from strandline.index.matchers import Matcher, MatchOp
from strandline.node.query.asks import (
    LABEL_NAMES,
    LABEL_VALUES,
    SERIES,
    LabelNamesAsk,
    LabelValuesAsk,
    Lookup,
    SeriesAsk,
)
from strandline.node.query.frames import PLAIN_MAGIC, PREFIX, FrameDamaged
from strandline.time_range import TimeRange

_ASKED = {SERIES: AskedOfKeys.SERIES, LABEL_NAMES: AskedOfKeys.NAMES, LABEL_VALUES: AskedOfKeys.VALUES}
_KINDS = {asked: kind for kind, asked in _ASKED.items()}
# The prefix; what is asked, the first and the last time, the seconds that there are, how many results are
# wanted, the length of the label.
_QUESTION = struct.Struct(f"{PREFIX.format}BqqdIH")
_COUNT = struct.Struct(f"{PREFIX.format}I")
_MOST = 2**31 - 1
# Where the first time lies behind the last one, all times are meant.
_ALL = (1, 0)


@dataclass(slots=True)
class PlainLookup:
    """A look-up whose selectors name values of labels and nothing else."""

    kind: str
    label: str
    limit: int
    times: tuple[int, int]
    """The first and the last."""
    selectors: bytes

    @classmethod
    def about(
        cls, kind: str, label: str, limit: int, within: tuple[int, int] | None, selectors: bytes
    ) -> "PlainLookup":
        """A look-up in a range of times, or in all."""
        return cls(kind, label, limit, within or _ALL, selectors)

    @property
    def asked(self) -> AskedOfKeys:
        """What of the series."""
        return _ASKED[self.kind]

    @property
    def within(self) -> TimeRange | None:
        """The times that are meant."""
        first, last = self.times
        return TimeRange(first, last) if first <= last else None

    def frame(self, seconds: float) -> bytes:
        """As the link takes it, with so much time."""
        label, rest = self.label.encode(), self.selectors
        size = _QUESTION.size - PREFIX.size + len(label) + len(rest)
        limit = min(self.limit, _MOST)
        numbers = (self.asked, *self.times, seconds, limit, len(label))
        return b"".join((_QUESTION.pack(PLAIN_MAGIC, 0, size, *numbers), label, rest))

    def ask(self) -> Lookup:
        """The same as a question that any series may answer. Raises `FrameDamaged`."""
        try:
            selectors = tuple(
                tuple(Matcher(label, MatchOp.EQUAL, value) for label, value in selector)
                for selector in unpacked_selectors(self.selectors)
            )
        except ValueError as error:
            raise FrameDamaged(f"a look-up has no sound selectors: {error}") from error
        if self.kind == SERIES:
            return SeriesAsk(selectors, self.within, self.limit)
        if self.kind == LABEL_NAMES:
            return LabelNamesAsk(selectors, self.within, self.limit)
        return LabelValuesAsk(self.label, selectors, self.within, self.limit)


@dataclass(frozen=True, slots=True)
class FewJson:
    """What a shard found in a handful of series: how many these are, and a list in JSON of what was asked of them."""

    series: int
    text: bytes


def lookup_of(frame: bytes) -> tuple[PlainLookup, float]:
    """The question that came, and how much time there is. Raises `FrameDamaged`."""
    try:
        _, header, body, asked, first, last, seconds, limit, length = _QUESTION.unpack_from(frame)
        behind = _QUESTION.size + length
        if header or PREFIX.size + body != len(frame) or behind > len(frame) or not seconds >= 0:
            raise ValueError("its lengths do not fit together")
        label = frame[_QUESTION.size : behind].decode()
        return PlainLookup(_KINDS[asked], label, limit, (first, last), frame[behind:]), seconds
    except (struct.error, ValueError, KeyError) as error:
        raise FrameDamaged(f"a look-up can't be read: {error}") from error


def answer_frame(answer: FewJson) -> bytes:
    """As the link takes it."""
    return _COUNT.pack(PLAIN_MAGIC, 0, _COUNT.size - PREFIX.size + len(answer.text), answer.series) + answer.text


def answer_in(frame: bytes) -> FewJson:
    """The answer that came. Raises `FrameDamaged`."""
    try:
        _, header, body, series = _COUNT.unpack_from(frame)
    except struct.error as error:
        raise FrameDamaged(f"the answer of a look-up can't be read: {error}") from error
    if header or PREFIX.size + body != len(frame):
        raise FrameDamaged("the answer of a look-up has another length than it says")
    return FewJson(series, frame[_COUNT.size :])

"""Lists in JSON from several shards, of a handful of series each, as one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import orjson

from strandline.arrays import I64s
from strandline.index.documents import encode_part_key
from strandline.node.query.answers import Bytes, KeyBytes, SeriesAnswer, TermsAnswer
from strandline.node.query.asks import SERIES
from strandline.node.query.plain_lookups import FewJson

_EMPTY = b"[]"


@dataclass(frozen=True, slots=True)
class FewFound:
    """What a look-up found in a handful of series: a list in JSON, each result once and in order. `series` tells how
    many there are if they were asked for.
    """

    text: bytes
    series: int
    more: bool
    warnings: tuple[str, ...] = ()


def merged_few(kind: str, answers: Sequence[FewJson], limit: int) -> FewFound:
    """The answers of all shards. Mostly one has found something, and that is passed on as it is."""
    some = [answer for answer in answers if answer.text != _EMPTY]
    if len(some) <= 1:
        (found,) = some or (FewJson(0, _EMPTY),)
        return FewFound(found.text, found.series if kind == SERIES else 0, more=False)
    # Texts compare as their bytes do: UTF-8 keeps the order of code points.
    if kind == SERIES:
        every = {tuple(labels.items()): labels for answer in some for labels in orjson.loads(answer.text)}
        results = [labels for _, labels in sorted(every.items())]
    else:
        results = sorted({text for answer in some for text in orjson.loads(answer.text)})
    listed = results[:limit]
    series = len(listed) if kind == SERIES else 0
    return FewFound(orjson.dumps(listed), series, len(results) > limit)


def series_columns(few: FewJson) -> SeriesAnswer:
    """The same as other shards answer that have more."""
    keys = [encode_part_key(labels) for labels in orjson.loads(few.text)]
    return SeriesAnswer(KeyBytes(*_columns(keys)), more=False)


def terms_columns(few: FewJson) -> TermsAnswer:
    """Names or values as other shards answer that have more. How many series have each is not known; nobody looks at
    that where the results are merged.
    """
    terms = orjson.loads(few.text)
    return TermsAnswer(*_columns([term.encode() for term in terms]), np.ones(len(terms), dtype=np.int64), more=False)


def _columns(texts: Sequence[bytes]) -> tuple[I64s, Bytes]:
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    # Such as can be written to, as those from a frame: kernels are compiled for either, and an event loop calls these.
    return offsets, np.frombuffer(bytearray().join(texts), dtype=np.uint8)

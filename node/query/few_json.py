"""Lists in JSON from several shards, of a handful of series each, as one."""

from collections.abc import Sequence

import orjson

from strandline.node.query.asks import SERIES
from strandline.node.query.plain_lookups import FewJson

_EMPTY = b"[]"


def merged_few(kind: str, answers: Sequence[FewJson], limit: int) -> FewJson | None:
    """The answers of all shards, each result once and in order; None if that are too many. Mostly one has found
    something, and that is passed on as it is.
    """
    some = [answer for answer in answers if answer.text != _EMPTY]
    if len(some) <= 1:
        return some[0] if some else answers[0]
    # Texts compare as their bytes do: UTF-8 keeps the order of code points.
    if kind == SERIES:
        every = {tuple(labels.items()): labels for answer in some for labels in orjson.loads(answer.text)}
        results = [labels for _, labels in sorted(every.items())]
    else:
        results = sorted({text for answer in some for text in orjson.loads(answer.text)})
    return FewJson(sum(answer.series for answer in some), orjson.dumps(results)) if len(results) <= limit else None

"""Records from values, as shards see them."""

from collections.abc import Iterable

from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress


def decoded(series: Iterable[Series]) -> Columns:
    """One record with these series, encoded and decoded."""
    return decode_batch([compress(encode_request(series))], Limits())

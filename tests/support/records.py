"""Records as shards see them, from values."""

from collections.abc import Iterable

from strandline.wire.columns import Columns
from strandline.wire.decode import Limits, decode_batch
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress


def decoded(series: Iterable[Series]) -> Columns:
    """One record with these series, on its way through the wire's encoding and back."""
    return decode_batch([compress(encode_request(series))], Limits())

"""From records of any size to the buffer."""

from collections.abc import Sequence

import pytest

from strandline.node.shard import ingesting
from strandline.wire.decode import Decoder, Unpacked
from strandline.wire.encoding import Series, encode_request
from strandline.wire.snappy import compress
from support.shard_world import START, World

pytestmark = pytest.mark.unit


def test_records_of_one_poll_are_decompressed_within_a_limit_and_all_are_consumed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[tuple[int, int]] = []
    unpack = Decoder.unpack

    def record(decoder: Decoder, bodies: Sequence[bytes]) -> Unpacked:
        decompressed = unpack(decoder, bodies)
        unpacked.append((len(bodies), len(decompressed.data)))
        return decompressed

    monkeypatch.setattr(Decoder, "unpack", record)
    large = encode_request([Series([("__name__", "m"), ("text", "x" * 4_000)], [(START, 1.0)])])
    small = encode_request([Series([("__name__", "m"), ("text", "x")], [(START, 2.0)])])
    monkeypatch.setattr(ingesting, "MAX_UNPACKED", len(large) + len(small))
    world.start()
    for body in (large, small, small, large, large, b"no remote write", small):
        world.log.append(compress(body), START)
    world.log.append(b"nothing that can be decoded", START)
    world.read_all()
    assert all(size <= ingesting.MAX_UNPACKED for _, size in unpacked)
    assert sum(count for count, _ in unpacked) == 8
    counters = world.status.counters
    assert (counters.records, counters.samples, counters.dead_letters) == (8, 6, 2)
    assert [letter.offset for letter in world.dead_letters.letters] == [5, 7]

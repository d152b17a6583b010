"""Records that any client can send, and that could stop a shard permanently or damage its index."""

from collections.abc import Callable
from pathlib import Path

import pytest

from strandline.index.key_documents import LuceneDocuments
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.shard_index import ShardIndex
from strandline.index.vm import start_vm
from strandline.wire.decode import Decoder, Limits
from strandline.wire.encoding import Series, encode_request
from strandline.wire.kernels.labels import Verdict
from strandline.wire.snappy import compress
from support.shard_world import POLICY, START, World

pytestmark = pytest.mark.simulation
LEAST = -(2**63)


def test_labels_whose_total_length_is_too_long_drop_the_series_without_failing_the_shard(folder: Path) -> None:
    start_vm()
    # 40 labels of 1,000 bytes each: within every limit of a record.
    labels = [(f"{n:02d}" + "x" * 998, "v") for n in range(40)]
    body = compress(encode_request([Series(labels, [(START, 1.0)])]))
    columns = Decoder(Limits()).decode([body])
    with PartKeyIndex.open(folder / "lucene") as lucene:
        index = ShardIndex(POLICY, LuceneDocuments(lucene), open_bucket=1000, next_part_id=0, series_limit=1000)
        assert index.take(columns).new_keys == 0
    assert columns.skipped.series == {Verdict.NAME_TOO_LONG: 1}


def test_a_sample_at_the_minimum_time_does_not_confuse_keys(make_world: Callable[..., World]) -> None:
    world = make_world(series_limit=100_000)
    world.start()
    world.produce(("m", "first", START, 1.0))
    world.produce(("m", "odd", LEAST, 1.0))  # Once the key ends, its end equals the marker for "absent".
    for part in range(4):
        world.produce(*(("m", f"short {part} {n}", START, 1.0) for n in range(400)))
    world.read_all()
    for _ in range(9):  # The short-lived keys are purged and removed from the columns.
        world.produce(("m", "first", world.clock.now_ms(), 1.0))
        world.pass_hours(1)
    assert world.status.counters.too_old == 1, "this time counts as none"
    assert world.keys().get(("m", "odd")) is None
    world.produce(("m", "odd", world.clock.now_ms(), 7.0))
    world.read_all()
    assert world.found()["m", "odd"] == {world.clock.now_ms(): 7.0}
    assert 7.0 not in world.found()["m", "first"].values()

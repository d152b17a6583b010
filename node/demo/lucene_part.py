"""Lucene's part: the part keys of decoded records, indexed in bulk and found again."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strandline.index.key_table import KeyTable
from strandline.index.new_keys import new_key_batch
from strandline.index.part_key_index import PartKeyIndex
from strandline.index.pylucene.queries import label_is
from strandline.index.vm import start_vm
from strandline.node.demo.data import series_labels
from strandline.wire.decode import Limits, decode_batch

MOST_KEYS = 1_000_000


@dataclass(frozen=True, slots=True)
class KeysFound:
    """How many part keys the index has, and how many share a host and a metric with the first of them."""

    keys: int
    of_host: int
    of_metric: int


def index_and_find(bodies: Sequence[bytes], folder: Path) -> KeysFound:
    """Give every series of these records a part id, index the keys in `folder`, and look some of them up."""
    start_vm()
    columns = decode_batch(bodies, Limits())
    assigned = KeyTable().assign(columns.key_low, columns.key_high, next_row=0, most=MOST_KEYS)
    first = dict(series_labels(0))
    with PartKeyIndex.open(folder / "lucene") as index:
        index.add(new_key_batch(columns, assigned.new, assigned.rows[assigned.new]))
        index.refresh()
        return KeysFound(
            keys=index.count(),
            of_host=len(index.search(label_is("host", first["host"]))),
            of_metric=len(index.search(label_is("__name__", first["__name__"]))),
        )

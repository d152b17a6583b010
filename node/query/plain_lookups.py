"""Look-ups by the values of labels, as `strandline.index.lookup_server` takes them, and its answers.

They are laid out so that few calls make and read them: a message of the link, with its fields and columns, takes longer
than to find one series. All numbers are little endian. A question has the prefix of the link's frames; what is asked
for, as u8 (0 series, 1 names of labels, 2 values of a label); the first and the last time as i64, all times if the
first is greater; how many results are wanted as u32; the label with its length as u16; and selectors as
`strandline.index.key_lookup` packs them. An answer has the prefix, the number of series as u32, and a list in JSON that
is only passed on. One with nothing behind the prefix says that the question has to be asked over the link: many series
match, or there is more to say.
"""

import struct
from dataclasses import dataclass
from pathlib import Path

from strandline.node.query.asks import LABEL_NAMES, LABEL_VALUES, SERIES
from strandline.node.query.frames import PLAIN_MAGIC, PREFIX, FrameDamaged

KINDS = (SERIES, LABEL_NAMES, LABEL_VALUES)
"""What is asked for, by its number."""
DECLINED = PREFIX.pack(PLAIN_MAGIC, 0, 0)
_COUNT = struct.Struct(f"{PREFIX.format}I")


def lookups_path(link: Path) -> Path:
    """Where a process whose link is at a path answers look-ups beside it. For a node's shards that is no longer a path:
    the kernel allows no long ones.
    """
    return link.with_suffix(".look") if link.suffix == ".sock" else link.with_name(f"{link.name}.look")


@dataclass(slots=True)
class FewJson:
    """What a shard found in a handful of series: how many these are, and a list in JSON of what was asked of them."""

    series: int
    text: bytes


def answer_in(frame: bytes) -> FewJson:
    """The answer that came, if it is one. Raises `FrameDamaged`."""
    try:
        magic, header, body, series = _COUNT.unpack_from(frame)
    except struct.error as error:
        raise FrameDamaged(f"the answer of a look-up can't be read: {error}") from error
    if magic != PLAIN_MAGIC or header or PREFIX.size + body != len(frame):
        raise FrameDamaged("the answer of a look-up is none, or has another length than it says")
    return FewJson(series, frame[_COUNT.size :])

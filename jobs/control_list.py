"""The list of a job's control sample: each part keeps its series in its row, and the list is their sorted union.

A part's series are compressed in its outcome: sorted texts of labels repeat themselves, so that one takes 10 to 40
bytes. A text in the store has at most 64 KB, so a plan makes parts of some hundred control series, and a part whose
labels are too long all the same fails by name. How many a job may have is bounded when it is planned, since workers
read the rows of all parts again and again.
"""

import base64
import csv
import io
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Final

from strandline.errors import Fatal

MAX_PACKED: Final = 44 << 10
"""Characters in the outcome of a part, beside which its counts and bad records have room."""
MAX_KEYS: Final = 100_000
"""Series of a job, about: more are refused when it is planned."""
KEYS_PER_PART: Final = 500
"""Series of a part, about: a plan makes as many parts as this takes."""
_LEVEL = 6


class ControlTooLarge(Fatal):
    """The control sample of a part does not fit into its row."""


def pack_keys(keys: Sequence[str]) -> str:
    """The series of a part, as its row keeps them; empty for none. Raises `ControlTooLarge`."""
    if not keys:
        return ""
    text = json.dumps(sorted(keys), separators=(",", ":"), ensure_ascii=False)
    packed = base64.b64encode(zlib.compress(text.encode(), _LEVEL)).decode()
    if len(packed) > MAX_PACKED:
        raise ControlTooLarge(
            f"the {len(keys):,} series of a part's control sample take {len(packed):,} bytes, over the limit of "
            f"{MAX_PACKED:,}",
            remedy="Plan the job with a smaller --control, or with smaller parts (jobs.part_series)",
        )
    return packed


def unpack_keys(packed: str) -> list[str]:
    """What `pack_keys` packed."""
    return list(json.loads(zlib.decompress(base64.b64decode(packed)))) if packed else []


def control_csv(packed: Iterable[str]) -> bytes:
    """The union of parts' series, sorted, one a line behind a header, as CSV (RFC 4180, with line feeds alone)."""
    keys = sorted({key for one in packed for key in unpack_keys(one)})
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["series"])
    rows.writerows([key] for key in keys)
    return written.getvalue().encode()

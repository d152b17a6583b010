"""The list of a job's control sample: each part stores its series in its row, and the list is their sorted union.

The series are compressed in the outcome of the part: sorted label texts have much in common, so one takes 10 to 40
bytes. A text in the store has at most 64 KB. Plans therefore make parts of a few hundred control series, and a part
whose labels are still too long fails with an error. The number for a job is limited when it is planned, because workers
read the rows of all parts repeatedly.
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
"""In characters. The rest of the 64 KB is for the counts and bad records of the outcome."""
MAX_KEYS: Final = 100_000
"""The approximate limit for a job; a plan with more is rejected."""
KEYS_PER_PART: Final = 500
"""The approximate limit for a part: plans make enough parts for it."""
_LEVEL = 6


class ControlTooLarge(Fatal):
    """The control sample of a part does not fit into its row."""


def pack_keys(keys: Sequence[str]) -> str:
    """Encode the series of a part for its row; empty if there are none. Raises `ControlTooLarge`."""
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
    """Decode the result of `pack_keys`."""
    return list(json.loads(zlib.decompress(base64.b64decode(packed)))) if packed else []


def control_csv(packed: Iterable[str]) -> bytes:
    """The sorted union of the parts' series as CSV: a header, then one per line (RFC 4180, but with line feeds)."""
    keys = sorted({key for one in packed for key in unpack_keys(one)})
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["series"])
    rows.writerows([key] for key in keys)
    return written.getvalue().encode()

"""Calls every kernel of a CSV import once, so that set-up compiles it. Otherwise, the first import of a new
installation would compile for half a minute before its first chunk, and for minutes on a busy machine.
"""

from pathlib import Path
from typing import Final

from strandline.jobs.importing.part_sources import chunks_of
from strandline.jobs.importing.planning import ImportOptions, plan_import
from strandline.jobs.importing.spec import Format
from strandline.jobs.landing.packing import pack
from strandline.recovery.periods import HOUR
from strandline.time_range import ALL_TIMES

_MAPPING: Final = {
    "metric": "warm_up",
    "value": "value",
    "time": {"column": "time", "unit": "ms"},
    "labels": ["host"],
}
_ROWS: Final = 40


def warm_up(folder: Path) -> None:
    """Write a small file to this folder, read it, divide it into chunks, and pack them."""
    path = folder / "warm-up.csv"
    rows = [f'{HOUR * row},"host-{row % 3}",{"?" if row % 7 == 6 else row}' for row in range(_ROWS)]
    path.write_text("\n".join(["time,host,value", *rows]), encoding="ascii")
    # Small enough that the samples of a chunk are divided.
    options = ImportOptions(Format.CSV, _MAPPING, part_bytes=400, chunk_bytes=200, max_record=100, packed_bytes=300)
    plan = plan_import([str(path)], options)
    for part in plan.parts:
        with chunks_of(part, plan.spec) as chunks:
            for chunk in chunks:
                for offset, block in chunk.blocks:
                    pack(block, 2, ALL_TIMES, offset=offset)
    path.unlink()

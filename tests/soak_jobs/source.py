"""The file to import. The value of a sample is the number of its row, so that duplicates can be recognised."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

METRIC = "soak_usage"
MAPPING = """
metric = "soak_usage"
value = "usage"
time = {column = "at", unit = "ms"}
labels = ["host"]
"""
_BAD_EVERY = 1_000
_ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Source:
    """A CSV file with `rows` rows, some of which are bad records, and its mapping."""

    path: Path
    mapping: Path
    rows: int
    first_ms: int

    @property
    def bad(self) -> int:
        return self.rows // _BAD_EVERY

    @property
    def samples(self) -> int:
        return self.rows - self.bad

    def good_rows(self) -> npt.NDArray[np.int64]:
        """The rows that are samples."""
        rows = np.arange(self.rows)
        return rows[rows % _BAD_EVERY != _BAD_EVERY - 1]

    def arguments(self) -> list[str]:
        """The arguments of `strandline job import`."""
        return [str(self.path), "--format", "csv", "--mapping", str(self.mapping)]


def write_source(folder: Path, rows: int, series: int, last_ms: int) -> Source:
    """Write a file whose rows are a millisecond apart, up to `last_ms`."""
    source = Source(folder / "soak.csv", folder / "mapping.toml", rows, last_ms - rows)
    source.mapping.write_text(MAPPING)
    with source.path.open("w", encoding="ascii") as file:
        file.write("at,host,usage\n")
        for begin in range(0, rows, _ROWS_AT_ONCE):
            file.writelines(
                f"{source.first_ms + row},host-{row % series},{'?' if row % _BAD_EVERY == _BAD_EVERY - 1 else row}\n"
                for row in range(begin, min(rows, begin + _ROWS_AT_ONCE))
            )
    return source

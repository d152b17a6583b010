"""Records that are generated in advance, in a file. Generating them takes as much CPU time as reading them, and would
distort concurrent measurements.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_LENGTH = struct.Struct("<I")


class PreparedRecords:
    """The bodies of records, in order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0

    def fill(self, bodies: Iterable[bytes]) -> None:
        """Write all bodies to the file."""
        with self._path.open("wb") as file:
            for body in bodies:
                file.write(_LENGTH.pack(len(body)))
                file.write(body)
                self.count += 1

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while head := file.read(_LENGTH.size):
                yield file.read(_LENGTH.unpack(head)[0])

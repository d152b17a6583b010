"""Records that are made before they are needed, in a file: making them takes as much CPU time as reading them does, and
would be taken for a cost of whatever runs beside it.
"""

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_LENGTH = struct.Struct("<I")


class PreparedRecords:
    """The bodies of records, in their order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0

    def fill(self, bodies: Iterable[bytes]) -> None:
        """Write all of them."""
        with self._path.open("wb") as file:
            for body in bodies:
                file.write(_LENGTH.pack(len(body)))
                file.write(body)
                self.count += 1

    def __iter__(self) -> Iterator[bytes]:
        with self._path.open("rb") as file:
            while head := file.read(_LENGTH.size):
                yield file.read(_LENGTH.unpack(head)[0])

"""A full disk as Lucene reports it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.disk import DiskFull
from strandline.errors import Retryable
from strandline.index.pylucene.failures import IndexClosed, LuceneFailed, _translate

pytestmark = pytest.mark.unit

FOLDER = Path("/data/metrics/0/index")


@dataclass(frozen=True)
class Thrown:
    """A Java exception."""

    name: str
    message: str | None
    cause: "Thrown | None" = None

    def getClass(self) -> "Thrown":  # noqa: N802 - as Java has it
        return self

    def getName(self) -> str:  # noqa: N802
        return self.name

    def getMessage(self) -> str | None:  # noqa: N802
        return self.message

    def getCause(self) -> "Thrown | None":  # noqa: N802
        return self.cause


NO_ROOM = Thrown("java.io.IOException", "No space left on device")
CLOSED = "org.apache.lucene.store.AlreadyClosedException"


@pytest.mark.parametrize(
    "thrown",
    [
        NO_ROOM,
        Thrown("java.nio.file.FileSystemException", "/data/metrics/0/index/_3.fdt: Disk quota exceeded"),
        Thrown(CLOSED, "this IndexWriter is closed", NO_ROOM),
        Thrown(CLOSED, None, Thrown("org.apache.lucene.index.MergePolicy$MergeException", None, NO_ROOM)),
    ],
)
def test_a_full_disk_is_named_also_where_it_closed_the_writer_in_another_thread(thrown: Thrown) -> None:
    error = _translate(thrown, FOLDER)
    assert isinstance(error, DiskFull)
    assert str(FOLDER) in error.message
    assert error.transient, "a new process may succeed once there is room"
    assert not isinstance(error, Retryable), "and this one must stop, because part of a batch may be in the index"


def test_other_errors_are_not_translated() -> None:
    assert isinstance(_translate(Thrown(CLOSED, "this IndexWriter is closed"), FOLDER), IndexClosed)
    assert isinstance(_translate(Thrown("java.io.IOException", "Input/output error"), FOLDER), LuceneFailed)

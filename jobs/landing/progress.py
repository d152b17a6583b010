"""How far a part has landed, and its encoding in the metadata of the offset, as numbers only."""

from dataclasses import dataclass
from typing import Final

from strandline.errors import Fatal

MAX_METADATA: Final = 1_000
"""In characters. Brokers reject 4,096 by default, and disconnect for much longer metadata."""

_VERSION = 1


class MetadataTooLong(Fatal):
    """The counts of a part exceed the limit of an offset's metadata."""


class ProgressUnreadable(Fatal):
    """The metadata of a part's offset was not written by a part log."""


@dataclass(frozen=True, slots=True)
class PartIdentity:
    """A part of a job. Its name is unique and never changes."""

    dataset: str
    job: str
    part: int

    def __post_init__(self) -> None:
        # With a dot in the job, parts of two datasets could have equal names.
        if not self.job or "." in self.job or self.part < 0:
            raise ValueError(f"job = {self.job!r} must have no dot, and part = {self.part} must not be negative")

    @property
    def name(self) -> str:
        """The transactional id for the part, and the name of its consumer group."""
        return f"{self.dataset}.{self.job}.{self.part}"

    def __str__(self) -> str:
        return f"part {self.part} of job {self.job}"


@dataclass(frozen=True, slots=True)
class Progress:
    """The position in the source where the landed chunks end, and the counts up to there, none of them negative. The
    kind of job defines which counts there are, and their order.
    """

    position: int = 0
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if min(self.position, *self.counts, 0) < 0:
            raise ValueError(f"position {self.position} and counts {self.counts} must not be negative")


@dataclass(frozen=True, slots=True)
class Landed:
    """The number of chunks of a part that have landed, and the progress after the last of them: position 0 and no
    counts before the first one.
    """

    chunks: int = 0
    progress: Progress = Progress()


def encode_progress(landed: Landed) -> str:
    """The metadata of an offset. Raises `MetadataTooLong`."""
    numbers = (_VERSION, landed.chunks, landed.progress.position, *landed.progress.counts)
    text = " ".join(map(str, numbers))
    if len(text) > MAX_METADATA:
        raise MetadataTooLong(
            f"{len(landed.progress.counts)} counts take {len(text)} characters, over the limit of {MAX_METADATA}",
            remedy="Count fewer things",
        )
    return text


def decode_progress(part: PartIdentity, chunks: int, metadata: str) -> Landed:
    """Decode an offset and its metadata. Raises `ProgressUnreadable` if no part log has written them."""
    try:
        version, landed, position, *counts = map(int, metadata.split(" "))
        progress = Progress(position, tuple(counts))
    except ValueError as error:
        raise _unreadable(part, chunks, metadata) from error
    if version != _VERSION or landed != chunks or chunks < 1:
        raise _unreadable(part, chunks, metadata)
    return Landed(chunks, progress)


def _unreadable(part: PartIdentity, chunks: int, metadata: str) -> ProgressUnreadable:
    return ProgressUnreadable(
        f"the consumer group {part.name} has offset {chunks} with metadata {metadata[:100]!r}, which no part log "
        f"wrote: what has landed of {part} is not known",
        remedy="Find out what commits offsets for the group; plan the job again under another name",
    )

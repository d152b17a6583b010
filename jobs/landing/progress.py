"""How far a part has landed, and how that is written beside its offset: as numbers only."""

from dataclasses import dataclass
from typing import Final

from strandline.errors import Fatal

MAX_METADATA: Final = 1_000
"""Characters. Brokers refuse 4,096, unless they are set otherwise, and disconnect for far longer ones."""

_VERSION = 1


class MetadataTooLong(Fatal):
    """The counts of a part take more characters than are kept beside an offset."""


class ProgressUnreadable(Fatal):
    """What stands beside a part's offset was not written by a part log."""


@dataclass(frozen=True, slots=True)
class PartIdentity:
    """A part of a job. Two parts never have the same name, and a name never changes."""

    dataset: str
    job: str
    part: int

    def __post_init__(self) -> None:
        # With a dot in the job, the names of parts of two datasets could be the same.
        if not self.job or "." in self.job or self.part < 0:
            raise ValueError(f"job = {self.job!r} must have no dot, and part = {self.part} must not be negative")

    @property
    def name(self) -> str:
        """The transactional id of whoever lands the part, and the name of its consumer group."""
        return f"{self.dataset}.{self.job}.{self.part}"

    def __str__(self) -> str:
        return f"part {self.part} of job {self.job}"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where in the source the landed chunks end, and what was counted up to there: which numbers, and in which order,
    is for the kind of job to say. None is negative.
    """

    position: int = 0
    counts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if min(self.position, *self.counts, 0) < 0:
            raise ValueError(f"position {self.position} and counts {self.counts} must not be negative")


@dataclass(frozen=True, slots=True)
class Landed:
    """What a part's holder finds: the number of chunks that have landed, and the progress behind the last of them. If
    none has, the progress is that of nothing: position 0, no counts.
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
    """What an offset and its metadata say. Raises `ProgressUnreadable` for any that a part log did not write."""
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

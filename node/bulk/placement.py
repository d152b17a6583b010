"""Decides where the parts of a job run: in the worker's process, or on Spark. Pure."""

from collections.abc import Iterable
from enum import StrEnum

from strandline.jobs.importing.import_kind import IMPORT
from strandline.jobs.importing.part_sources import part_source
from strandline.jobs.importing.text_parts import TextPart
from strandline.jobs.sources.compressed import compression_of

SPARK_FROM_BYTES = 500 << 20
"""From this size on, a Spark session is worth its 20 s to start. About 16 million samples as text."""
# Estimated ratio of the size as text to the size of a compressed or binary file.
_TEXT_RATIO = 8


class Placement(StrEnum):
    """Where parts run. AUTO chooses one of the others by the size of the sources."""

    AUTO = "auto"
    PROCESS = "process"
    SPARK = "spark"


def resolve_placement(placement: Placement, kind: str, sources: Iterable[str]) -> Placement:
    """Where parts with these sources run; never AUTO. With AUTO, jobs that read no files run in the process."""
    if placement is not Placement.AUTO:
        return placement
    # A single part can't run in parallel.
    found = list(sources)
    is_large = kind == IMPORT and len(found) > 1 and text_bytes(found) >= SPARK_FROM_BYTES
    return Placement.SPARK if is_large else Placement.PROCESS


def text_bytes(sources: Iterable[str]) -> int:
    """The size of an import's sources as text; an estimate for compressed and binary files."""
    files: dict[str, int] = {}
    total = 0
    for text in sources:
        source = part_source(text)
        if isinstance(source, TextPart) and compression_of(source.uri) is None:
            total += source.end - source.start
        else:
            files[source.uri] = _TEXT_RATIO * sum(file.size for file in source.files)
    return total + sum(files.values())

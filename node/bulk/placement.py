"""Placement the parts of a job run: in the process of the worker, or on Spark. Pure."""

from collections.abc import Iterable
from enum import StrEnum

from strandline.jobs.importing.import_kind import IMPORT
from strandline.jobs.importing.part_sources import part_source
from strandline.jobs.importing.text_parts import TextPart
from strandline.jobs.sources.compressed import compression_of

SPARK_FROM_BYTES = 500 << 20
"""About placement a Spark session, which takes 20 s to begin, is worth it: some 16 million samples of text."""
# Of a compressed or binary file, as against the same samples in text.
_TEXT_A_BYTE = 8


class Placement(StrEnum):
    """Placement parts run. `auto` is one of the others, by how much there is to do."""

    AUTO = "auto"
    PROCESS = "process"
    SPARK = "spark"


def resolve_placement(placement: Placement, kind: str, sources: Iterable[str]) -> Placement:
    """Placement the parts with these sources run. Kinds of jobs that read no files run in the process, unless they are to
    run on Spark.
    """
    if placement is not Placement.AUTO:
        return placement
    # A single part has nothing to run beside.
    found = list(sources)
    is_large = kind == IMPORT and len(found) > 1 and text_bytes(found) >= SPARK_FROM_BYTES
    return Placement.SPARK if is_large else Placement.PROCESS


def text_bytes(sources: Iterable[str]) -> int:
    """How much text the parts of an import are about; that of compressed and binary files is a guess."""
    files: dict[str, int] = {}
    total = 0
    for text in sources:
        source = part_source(text)
        if isinstance(source, TextPart) and compression_of(source.uri) is None:
            total += source.end - source.start
        else:
            files[source.uri] = _TEXT_A_BYTE * sum(file.size for file in source.files)
    return total + sum(files.values())

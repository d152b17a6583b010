"""Archives of Java classes that set-up has written (class data sharing): a JVM maps them instead of loading and
verifying thousands of classes from jars, which takes half of the processor time of a start.

An archive fits one JDK and one class path. A JVM that it does not fit starts without it. Cassandra has none: its agent
that measures objects rules it out.
"""

import sys
from pathlib import Path
from typing import Final

FOLDER: Final = "strandline-classes"
"""In the virtual environment."""
KAFKA: Final = "kafka"
SPARK: Final = "spark"
RECORDING: Final = ("-XX:+RecordDynamicDumpInfo", "-Xlog:cds*=off")
"""The options of a JVM of whose classes an archive is to be written."""


def archive_options(name: str, prefix: Path | None = None) -> list[str]:
    """The options of a JVM that uses an archive, if set-up has written one."""
    archive = (prefix or Path(sys.prefix)) / FOLDER / f"{name}.jsa"
    # Without a word about one that does not fit.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"] if archive.exists() else []

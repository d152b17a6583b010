"""Class data sharing: a JVM maps an archive of classes that set-up has written. Without one, loading and verifying
thousands of classes from jars takes half of the CPU time of a start.

An archive is valid for one JDK and one class path. A JVM ignores an archive that does not match. Cassandra has none,
because its Java agent that measures objects (jamm) prevents class data sharing.
"""

import sys
from pathlib import Path
from typing import Final

FOLDER: Final = "strandline-classes"
"""The folder with the archives in the virtual environment."""
KAFKA: Final = "kafka"
SPARK: Final = "spark"
RECORDING: Final = ("-XX:+RecordDynamicDumpInfo", "-Xlog:cds*=off")
"""JVM options that record the loaded classes, so that an archive of them can be written."""


def archive_options(name: str, prefix: Path | None = None) -> list[str]:
    """JVM options that use the archive of this name; none if set-up has not written it."""
    archive = (prefix or Path(sys.prefix)) / FOLDER / f"{name}.jsa"
    # The JVM does not log that an archive does not match.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"] if archive.exists() else []

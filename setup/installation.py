"""The installation record: the paths of the JDK and of each server's jars.

Set-up writes it as a JSON file into the virtual environment. Code that starts a JVM reads it from there, and so does
not need to know the cache.
"""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from strandline.errors import Fatal

FILE_NAME = "strandline-installation.json"
OVERRIDE = "STRANDLINE_INSTALLATION"


class NotInstalled(Fatal):
    """The installation record is missing or can't be read."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The folders of the JDK and of the jars of Kafka, Cassandra and Spark's Kafka source."""

    java_home: Path
    kafka_jars: Path
    cassandra_jars: Path
    spark_jars: Path

    @classmethod
    def load(cls) -> Self:
        """The record of this virtual environment, or the one that `STRANDLINE_INSTALLATION` names."""
        path = Path(os.environ.get(OVERRIDE, "") or Path(sys.prefix) / FILE_NAME)
        try:
            fields = json.loads(path.read_text(encoding="utf-8"))
            return cls(**{name: Path(fields[name]) for name in cls.__slots__})
        except FileNotFoundError as error:
            raise NotInstalled(f"no installation record at {path}", remedy="Run `make setup`") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotInstalled(
                f"the installation record {path} can't be read ({error})", remedy="Run `make setup` to write it again"
            ) from error

    def save(self, prefix: Path) -> None:
        """Write the record into the virtual environment at `prefix`, atomically."""
        path = prefix / FILE_NAME
        partial = path.with_suffix(".partial")
        fields = {name: str(getattr(self, name)) for name in self.__slots__}
        partial.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
        partial.replace(path)

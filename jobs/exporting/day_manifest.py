"""The manifest of an exported day: its valid files, and the stored rows from which they were made. Pure.

A day is exported again only if it would be made from other rows now. It is never replaced once a row from which it was
made has expired, because the samples of that row exist nowhere else.
"""

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from enum import StrEnum
from typing import Any

import orjson

from strandline.digest import digest
from strandline.errors import ExitCode, Fatal
from strandline.jobs.outcome import FileWritten
from strandline.jobs.reading.pins import RowId
from strandline.recovery.periods import utc_text

VERSION = 1
NAME = "_manifest.json"
DAY_MS = 86_400_000


class ConflictingExport(Fatal):
    """The target contains another export, which this one would overwrite."""

    exit_code = ExitCode.USAGE


class ManifestUnreadable(Fatal):
    """A day's manifest has an unknown format."""


@dataclass(frozen=True, slots=True)
class ExportDay:
    """The definition of a day of an export: a selector, and a time range within one UTC day. `end` is exclusive."""

    dataset: str
    selector: str
    start: int
    end: int

    @property
    def date(self) -> str:
        """The UTC date."""
        return utc_text(self.start)[: len("2026-11-15")]

    @property
    def folder(self) -> str:
        """The folder of the day's files."""
        return folder_of(self.date)


@dataclass(frozen=True, slots=True)
class DayManifest:
    """An exported day. `revision` counts its exports, starting at 1. `ready` is whether all of its hours were ready."""

    day: ExportDay
    revision: int
    ready: bool
    job: str
    files: tuple[FileWritten, ...]
    rows: tuple[RowId, ...]

    @property
    def path(self) -> str:
        """The path of the manifest."""
        return f"{self.day.folder}/{NAME}"

    def to_json(self) -> bytes:
        """The content of the file."""
        value = {
            "version": VERSION,
            "dataset": self.day.dataset,
            "selector": self.day.selector,
            "day": self.day.date,
            "start": self.day.start,
            "end": self.day.end,
            "revision": self.revision,
            "ready": self.ready,
            "job": self.job,
            "samples": sum(file.rows for file in self.files),
            "files": [asdict(file) for file in self.files],
            "rows": [astuple(row) for row in self.rows],
        }
        return orjson.dumps(value, option=orjson.OPT_INDENT_2)

    @classmethod
    def from_json(cls, content: bytes, named: str) -> "DayManifest":
        """Parse the result of `to_json`. Raises `ManifestUnreadable`."""
        try:
            value: dict[str, Any] = orjson.loads(content)
            if value["version"] != VERSION:
                raise ManifestUnreadable(
                    f"{named} has version {value['version']}, but this program supports version {VERSION}",
                    remedy="Use the version of Strandline that wrote it, or a later one",
                )
            return cls(
                ExportDay(value["dataset"], value["selector"], value["start"], value["end"]),
                value["revision"],
                value["ready"],
                value["job"],
                tuple(FileWritten(**one) for one in value["files"]),
                tuple(RowId(*one) for one in value["rows"]),
            )
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ManifestUnreadable(
                f"{named} can't be read: {error!r}", remedy="Export to another folder, or remove that day's folder"
            ) from error


def folder_of(day: str) -> str:
    """The folder of a day. Spark and pyarrow read the date from names of this form."""
    return f"day={day}"


class DayAction(StrEnum):
    """What an export does with a day."""

    EXPORT = "export"
    UNCHANGED = "unchanged"
    EXPIRED = "kept: rows it was made from have expired"


def days_between(start: int, end: int) -> list[tuple[int, int]]:
    """The start and end of each UTC day from `start` to `end`, limited to that range. Ends are exclusive."""
    days = range(start // DAY_MS, -(-end // DAY_MS))
    return [(max(start, day * DAY_MS), min(end, (day + 1) * DAY_MS)) for day in days]


def choose_action(
    former: DayManifest | None, day: ExportDay, rows: Sequence[RowId], expired: Sequence[RowId]
) -> DayAction:
    """Whether to export a day that would be made from `rows` now. `expired` are the rows of the former export that have
    expired. Raises `ConflictingExport` if the former export has another selector or dataset, or covers a time that this
    one does not.
    """
    if former is None:
        return DayAction.EXPORT
    was = former.day
    if (was.dataset, was.selector) != (day.dataset, day.selector):
        raise ConflictingExport(
            f"{day.folder} holds an export of {was.selector!r} of dataset {was.dataset}",
            remedy="Export to another folder, or use the same selector",
        )
    if day.start > was.start or day.end < was.end:
        raise ConflictingExport(
            f"{day.folder} holds an export from {utc_text(was.start)} to {utc_text(was.end)}, which would be cut short",
            remedy="Export the whole day, or to another folder",
        )
    if (was.start, was.end) == (day.start, day.end) and former.rows == tuple(sorted(rows)):
        return DayAction.UNCHANGED
    return DayAction.EXPIRED if expired else DayAction.EXPORT


def fingerprint(content: bytes | None) -> str:
    """A digest that detects a replaced manifest; empty without a manifest."""
    return f"{digest(content):032x}" if content is not None else ""


def file_name(job: str, part: int, epoch: int) -> str:
    """The name of a part's file, unique for each lease. Names sort like the parts."""
    return f"{job}-{part:06d}-{epoch}.parquet"


def job_of(name: str) -> str:
    """The job that has written a file; empty for files with another form of name."""
    stem, dot, _ = name.rpartition(".parquet")
    parts = stem.rsplit("-", 2)
    return parts[0] if dot and len(parts) == 3 else ""

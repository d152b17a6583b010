"""The report of a job: what its parts have counted, and the first bad records with their places. Pure.

The source of a part is JSON of its kind's own, in which `uri` names where its records come from.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from strandline.jobs.bad_records import MAX_EXAMPLES, BadRecord
from strandline.jobs.counts import Counts
from strandline.jobs.outcome import PartOutcome, SamplesByTime
from strandline.store.bulk_jobs import BulkPart


@dataclass(frozen=True, slots=True)
class BadLine:
    """A bad record of a file. `line` counts from 1 on behind the file's header; 0 where lines before it are unknown."""

    uri: str
    record: BadRecord


@dataclass(frozen=True, slots=True)
class JobReport:
    """What parts of a job have done, as far as they are done. `series` counts a series once for each chunk that it is
    in: there are at most so many.
    """

    counts: Counts
    files: int
    parts_done: int
    times: SamplesByTime
    bad: dict[str, int]
    bad_lines: tuple[BadLine, ...]
    nulls: int = 0
    series: int = 0

    def to_json(self) -> str:
        """As it stands in a job's row."""
        value = asdict(self)
        value["times"]["counts"] = list(self.times.counts.items())
        return orjson.dumps(value).decode()

    @classmethod
    def from_json(cls, text: str) -> "JobReport":
        """What `to_json` wrote."""
        value: dict[str, Any] = orjson.loads(text)
        return cls(
            Counts(**value["counts"]),
            value["files"],
            value["parts_done"],
            SamplesByTime(value["times"]["step_ms"], dict(value["times"]["counts"])),
            value["bad"],
            tuple(BadLine(one["uri"], BadRecord(**one["record"])) for one in value["bad_lines"]),
            value.get("nulls", 0),
            value.get("series", 0),
        )


def job_report(parts: Iterable[BulkPart]) -> JobReport:
    """The report of a job's parts, in the order of their numbers: parts of one file follow each other."""
    counts, times, bad = Counts(), SamplesByTime(), dict[str, int]()
    lines: list[BadLine] = []
    files, done, nulls, series = set[str](), 0, 0, 0
    uri, lines_before = "", 0
    are_counted = True
    for part in parts:
        source, outcome = orjson.loads(part.source), PartOutcome.from_json(part.outcome)
        if source["uri"] != uri:
            uri, are_counted = str(source["uri"]), True
            lines_before = source["of"].get("header_lines", 0) if source.get("kind") == "text" else 0
            files.add(uri)
        if not part.outcome:
            # Where lines of later parts of the file stand is not known without this one.
            are_counted = False
            continue
        done += 1
        counts += outcome.counts
        nulls += outcome.nulls
        series += outcome.series
        times = SamplesByTime.joined((times, outcome.times))
        for reason, count in outcome.bad.counts.items():
            bad[reason] = bad.get(reason, 0) + count
        for record in outcome.bad.examples[: MAX_EXAMPLES - len(lines)]:
            known = record.line > 0 and are_counted
            lines.append(BadLine(uri, replace(record, line=record.line + lines_before if known else 0)))
        lines_before += outcome.lines
    return JobReport(counts, len(files), done, times, bad, tuple(lines), nulls, series)

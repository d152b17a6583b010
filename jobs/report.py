"""The report of a job: the counts of its parts, and the first bad records with their positions. Pure.

The source of a part is JSON whose format depends on the kind of job; its `uri` names where the records come from.
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
    """A bad record of a file. Its line is that of the file, starting at 1; 0 if the lines before it are unknown."""

    uri: str
    record: BadRecord


@dataclass(frozen=True, slots=True)
class JobReport:
    """The results of the parts that are done. `series` counts a series once per chunk that contains it, and is
    therefore an upper bound.
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
        """The text for the job's row."""
        value = asdict(self)
        value["times"]["counts"] = list(self.times.counts.items())
        return orjson.dumps(value).decode()

    @classmethod
    def from_json(cls, text: str) -> "JobReport":
        """Parse the result of `to_json`."""
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
    """The report of a job. `parts` are ordered by number, so that the parts of a file are consecutive."""
    counts, times, bad = Counts(), SamplesByTime(), dict[str, int]()
    lines: list[BadLine] = []
    files, done, nulls, series = set[str](), 0, 0, 0
    uri, lines_before = "", 0
    lines_known = True
    for part in parts:
        source, outcome = orjson.loads(part.source), PartOutcome.from_json(part.outcome)
        if source["uri"] != uri:
            uri, lines_known = str(source["uri"]), True
            lines_before = source["of"].get("header_lines", 0) if source.get("kind") == "text" else 0
            files.add(uri)
        if not part.outcome:
            # Without this part's number of lines, line numbers in later parts of the file are unknown.
            lines_known = False
            continue
        done += 1
        counts += outcome.counts
        nulls += outcome.nulls
        series += outcome.series
        times = SamplesByTime.joined((times, outcome.times))
        for reason, count in outcome.bad.counts.items():
            bad[reason] = bad.get(reason, 0) + count
        for record in outcome.bad.examples[: MAX_EXAMPLES - len(lines)]:
            known = record.line > 0 and lines_known
            lines.append(BadLine(uri, replace(record, line=record.line + lines_before if known else 0)))
        lines_before += outcome.lines
    return JobReport(counts, len(files), done, times, bad, tuple(lines), nulls, series)

"""Writes the files for `strandline bench import`: scrapes of many series, with one sample per line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strandline.jobs.importing.spec import Format

FILE_FORMATS = (Format.CSV, Format.OPENMETRICS, Format.JSONL)
_INTERVAL_MS = 15_000
_LINES_PER_WRITE = 100_000

Line = Callable[[str, int, int, float], str]


@dataclass(frozen=True, slots=True)
class ImportLoad:
    """The load: the samples, the series, the file formats, and the partitions of the topic."""

    samples: int
    series: int = 4_000
    formats: tuple[Format, ...] = FILE_FORMATS
    partitions: int = 4


def mapping_of(format_: Format, metric: str) -> Mapping[str, Any]:
    """The mapping for a file of this format."""
    if format_ is not Format.CSV:
        return {}
    return {"metric": metric, "value": "usage", "time": {"column": "at", "unit": "ms"}, "labels": ["host", "dc"]}


def write_file(path: Path, format_: Format, load: ImportLoad, metric: str, now: int) -> Path:
    """Write a file with the load's samples of a metric, scrape by scrape until `now`."""
    header, line, footer = _LINES[format_]
    first = now - load.samples // load.series * _INTERVAL_MS
    with path.open("w", encoding="ascii") as file:
        file.write(header)
        for begin in range(0, load.samples, _LINES_PER_WRITE):
            file.write(
                "".join(
                    line(
                        metric,
                        row % load.series,
                        first + row // load.series * _INTERVAL_MS,
                        row * 7919 % 100_000 / 100,
                    )
                    for row in range(begin, min(load.samples, begin + _LINES_PER_WRITE))
                )
            )
        file.write(footer)
    return path


def header_bytes(format_: Format) -> int:
    """The length of the line with the column names."""
    return len(_LINES[format_][0]) if format_ is Format.CSV else 0


def _csv(_metric: str, series: int, at: int, value: float) -> str:
    return f"{at},host-{series},dc{series % 3},{value}\n"


def _openmetrics(metric: str, series: int, at: int, value: float) -> str:
    return f'{metric}{{host="host-{series}",dc="dc{series % 3}"}} {value} {at / 1000:.3f}\n'


def _jsonl(metric: str, series: int, at: int, value: float) -> str:
    labels = f'{{"__name__":"{metric}","host":"host-{series}","dc":"dc{series % 3}"}}'
    return f'{{"metric":{labels},"values":[{value}],"timestamps":[{at}]}}\n'


_LINES: dict[Format, tuple[str, Line, str]] = {
    Format.CSV: ("at,host,dc,usage\n", _csv, ""),
    Format.OPENMETRICS: ("# TYPE cpu_usage gauge\n", _openmetrics, "# EOF\n"),
    Format.JSONL: ("", _jsonl, ""),
}

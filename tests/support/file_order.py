"""The order of test files: the slowest first, so that the processes of a run end at about the same time.

`tests/file_times.json` has the seconds of each file that took longer than one, as `pytest --record-file-times` has
measured them. Files that are not in it come last, in their own order. The times need not be exact, and a test must not
depend on the order.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

TIMES = Path(__file__).parents[1] / "file_times.json"
LEAST_SECONDS = 1.0


def file_of(node_id: str) -> str:
    return node_id.partition("::")[0]


def longest_first(items: list[pytest.Item], seconds: Mapping[str, float]) -> None:
    """Sort tests by the time of their file. The tests of a file stay together and in their order."""
    items.sort(key=lambda item: -seconds.get(file_of(item.nodeid), 0.0))


def read_times(path: Path = TIMES) -> dict[str, float]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


class FileTimes:
    """A plugin of the process that receives all test reports. It writes the times at the end of the run."""

    def __init__(self, path: Path = TIMES) -> None:
        self._path = path
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[file_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        long = {name: round(seconds, 1) for name, seconds in self._seconds.items() if seconds >= LEAST_SECONDS}
        ordered = dict(sorted(long.items(), key=lambda item: (-item[1], item[0])))
        self._path.write_text(json.dumps(ordered, indent=0) + "\n", encoding="utf-8")

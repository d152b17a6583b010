"""`strandline promql test`, `format` and `explain`."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.cli import main as cli
from strandline.node.client.errors import with_caret
from support.fake_node import fake_node

pytestmark = pytest.mark.unit

GOOD = "load 1m\n a 1\n h {{count:1}}\n\neval instant at 0 a\n a 1\n\neval instant at 0 h\n"
BAD = "load 1m\n a 1\n\neval instant at 0 a\n a 2\n"


def test_scripts_are_run_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    passing, failing = tmp_path / "good.test", tmp_path / "bad.test"
    passing.write_text(GOOD)
    failing.write_text(BAD)
    assert cli.main(["promql", "test", str(passing)]) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [
        ["file", "passed", "failed", "skipped"],
        [str(passing), "1", "0", "1"],
        ["1", "skipped:", "native", "histograms"],
    ]
    assert cli.main(["promql", "test", str(passing), str(failing)]) == ExitCode.FAILED
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"{failing}:4: a", "  expected 2 for a, got 1 (1 shard)"]
    assert ["all", "1", "1", "1"] in [line.split() for line in lines]


def test_findings_are_available_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = tmp_path / "bad.test"
    failing.write_text(BAD)
    assert cli.main(["promql", "test", str(failing), "--output", "json"]) == ExitCode.FAILED
    document = json.loads(capsys.readouterr().out)
    assert (document["passed"], document["failed"], document["skipped"]) == (0, 1, 0)
    [finding] = document["files"][0]["failed"]
    assert (finding["line"], finding["query"], finding["reason"]) == (4, "a", "expected 2 for a, got 1")


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"\nlaod 1m\n", ":2: 'laod 1m' is not a command"), (b"load \xff", "is not valid UTF-8 at byte 5")],
)
def test_no_script_runs_if_one_is_malformed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, fault: str
) -> None:
    passing, malformed = tmp_path / "good.test", tmp_path / "malformed.test"
    passing.write_text(GOOD)
    malformed.write_bytes(content)
    assert cli.main(["promql", "test", str(passing), str(malformed)]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(malformed) in captured.err
    assert fault in captured.err


def test_a_query_is_formatted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["promql", "format", "sum(rate(x[300s]))by(job)>bool 1"]) == ExitCode.OK
    assert capsys.readouterr().out == "sum by (job) (rate(x[5m])) > bool 1\n"
    monkeypatch.setattr(sys, "stdin", StringIO("# a comment\n1 +\n2\n"))
    assert cli.main(["promql", "format", "-", "--output", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"query": "1 + 2"}


def test_an_invalid_query_is_shown_with_a_caret(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["promql", "format", "up and\nsum(up) + 'a'"]) == ExitCode.USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[1:] == ["  sum(up) + 'a'", "            ^"]


def test_a_long_line_is_truncated_around_the_error() -> None:
    line, caret = with_caret("a" * 300 + "!" + "b" * 300, 1, 301)
    assert line.startswith("  ...aaa")
    assert line.endswith("bbb...")
    assert line[len(caret) - 1] == "!"
    assert with_caret("up", 1, 3) == ["  up", "    ^"], "the position may be the end"
    assert with_caret("up", 7, 1) == [], "a position of another text"


def test_a_plan_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    query = "sum by (job) (rate(c_total{zone='a'}[5m]) * 2) / count(up @ 0)"
    times = ["--start", "2026-11-18T10:00:00Z", "--end", "2026-11-18T11:00:00Z", "--step", "1m"]
    assert cli.main(["promql", "explain", query, *times]) == ExitCode.OK
    assert capsys.readouterr().out == (
        """\
sum by (job) (rate(c_total{zone="a"}[5m]) * 2) / count(up @ 0.000)
from 2026-11-18T10:00:00Z to 2026-11-18T11:00:00Z, every 1m: 61 steps

Front:
  / of two vectors, one-to-one, ignoring ()
    merge the partial results of fragment 1
    evaluate once, for all 61 steps
      merge the partial results of fragment 2

Fragment 1, in every shard:
  select     c_total{zone="a"}
  samples    2026-11-18T09:55:00.001Z to 2026-11-18T11:00:00Z
  window     rate over 5m, at 61 steps
  then       value * 2
  aggregate  sum by (job)
  return     a partial result of each group

Fragment 2, in every shard:
  select     up
  samples    1969-12-31T23:55:00.001Z to 1970-01-01T00:00:00Z
  window     newest sample of the last 5m, at 1 step
  aggregate  count
  return     a partial result of each group
"""
    )


def test_a_plan_shows_the_filters_from_the_left_side(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["promql", "explain", "a{job='x'} unless on (job) b"]) == ExitCode.OK
    captured = capsys.readouterr().out
    assert (
        """\
  select     b{job="x"}
  narrowed   by job="x", which the left side has
"""
        in captured
    )
    assert captured.count("narrowed") == 1
    assert cli.main(["promql", "explain", "a{job='x'} unless on (job) b", "--output", "json"]) == ExitCode.OK
    assert [one["pushed"] for one in json.loads(capsys.readouterr().out)["fragments"]] == [[], ['job="x"']]


def test_a_plan_is_available_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    query = "quantile_over_time(scalar(q), -g[5m:1m] > 1)"
    assert cli.main(["promql", "explain", query]) == ExitCode.USAGE, "a filter on a range is not shown"
    capsys.readouterr()
    query = "quantile_over_time(scalar(q), g[5m])"
    assert cli.main(["promql", "explain", query, "--time", "100", "--output", "json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert document["front"]["fragment"] == 1
    assert document["front"]["children"][0]["children"][0]["fragment"] == 2
    samples, series = document["fragments"]
    assert (samples["selector"], samples["first"], samples["last"], samples["returns"]) == (
        "g",
        -199_999,
        100_000,
        "samples",
    )
    assert (series["selector"], series["returns"]) == ("q", "series")
    assert document["series"] is None


def test_the_node_reports_the_number_of_series_and_estimates_their_samples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node() as node:
        node.data("/api/v1/strandline/cardinality", {"series": 1234, "samples": 24_680}, "about")
        command = ["promql", "explain", "sum(up)", "--time", "1000", "--url", node.url]
        assert cli.main(command) == ExitCode.OK
        [(_, _, parameters)] = node.requests
        captured = capsys.readouterr()
        assert cli.main([*command, "--output", "json"]) == ExitCode.OK
        document = json.loads(capsys.readouterr().out)
    assert dict(parameters) == {"match[]": "up", "start": "700.001", "end": "1000", "limit": "1", "samples": "true"}
    assert "  series     about 1,234\n" in captured.out
    bounds = "1970-01-01T00:11:40.001Z to 1970-01-01T00:16:40Z"
    assert f"  samples    about 24,680 (an estimate), {bounds}\n" in captured.out
    assert captured.err == "note: about\n"
    assert (document["series"], document["estimated_samples"]) == ({"1": 1234}, {"1": 24_680})


def test_a_node_that_does_not_estimate_samples_still_reports_the_number_of_series(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with fake_node() as node:
        node.data("/api/v1/strandline/cardinality", {"series": 7})
        assert cli.main(["promql", "explain", "up", "--time", "1000", "--url", node.url]) == ExitCode.OK
    captured = capsys.readouterr().out
    assert "  series     about 7\n" in captured
    assert "estimate" not in captured

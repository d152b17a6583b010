"""`strandline series`, `labels`, `values` and `query`, with a server in place of the node."""

import json
import logging
import os
import ssl
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import structlog

from strandline.clock import ManualClock
from strandline.errors import ExitCode
from strandline.node.cli import main as cli
from strandline.node.cli.exit_codes import EXIT_CODES
from strandline.node.settings import load
from support.certificates import make_certificates
from support.fake_node import FakeNode, fake_node

pytestmark = pytest.mark.unit

NOW = 1_763_290_800_000
TOKEN = "0123456789abcdef-token"


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Isolates a test from this machine's settings, stops the clock, and restores logging."""
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    monkeypatch.setattr(cli, "SystemClock", lambda: ManualClock(NOW))
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNode]:
    """The node of the settings."""
    with fake_node() as running:
        monkeypatch.setenv("STRANDLINE_HTTP__NODE_ADDRESS", f"127.0.0.1:{running.server_port}")
        yield running


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


class Terminal(StringIO):
    """A stdout that is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_series_are_listed_as_selectors(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.data("/api/v1/series", [{"__name__": "up", "job": "a\x1b]0;x\x07"}, {"__name__": "up", "job": "b"}], "careful")
    assert cli.main(["series", "up", '{job="b"}', "--start", "-1h", "--end", "now"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert captured.out == 'up{job="a\\x1b]0;x\\a"}\nup{job="b"}\n'
    assert captured.err == "note: careful\n"
    parameters = [("match[]", "up"), ("match[]", '{job="b"}'), ("start", "1763287200"), ("end", "1763290800")]
    assert node.requests == [("GET", "/api/v1/series", [*parameters, ("limit", "1001")])]


def test_json_has_the_data_and_the_warnings(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.data("/api/v1/series", [{"a": "b"}], "careful")
    assert cli.main(["series", "up", "--output", "json"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {"data": [{"a": "b"}], "truncated": False, "warnings": ["careful"]}
    assert captured.err == "note: careful\n"


def test_a_truncated_list_has_a_note_apart_from_its_lines(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.data("/api/v1/labels", ["a", "b", "c"])
    assert cli.main(["labels", "--limit", "2"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert captured.out == "a\nb\n"
    assert captured.err == "note: there are more names than these 2; --limit 0 lists all that the node returns\n"
    assert cli.main(["labels", "up", "--limit", "0"]) == ExitCode.OK
    assert capsys.readouterr().out == "a\nb\nc\n"
    assert node.requests[1] == ("GET", "/api/v1/labels", [("match[]", "up")])


def test_values_are_those_of_a_label(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.data("/api/v1/label/job/values", ["a", ""])
    assert cli.main(["values", "job", "up", "--end", "2025-11-16"]) == ExitCode.OK
    assert capsys.readouterr().out == 'a\n""\n'
    assert node.requests == [
        ("GET", "/api/v1/label/job/values", [("match[]", "up"), ("end", "1763251200"), ("limit", "1001")])
    ]


def test_a_query_is_evaluated_now_by_default(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    result = [{"metric": {"__name__": "up", "job": "a"}, "value": [NOW / 1000, "1"]}]
    node.data("/api/v1/query", {"resultType": "vector", "result": result})
    assert cli.main(["query", "up"]) == ExitCode.OK
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["series", "time", "value"],
        ['up{job="a"}', "2025-11-16T11:00:00Z", "1"],
    ]
    assert cli.main(["query", "up", "--time", "1h ago", "--output", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["data"] == [
        {"metric": {"__name__": "up", "job": "a"}, "values": [[NOW / 1000, "1"]]}
    ]
    times = [dict(parameters)["time"] for _, _, parameters in node.requests]
    assert times == ["1763290800", "1763287200"]


MATRIX = {
    "resultType": "matrix",
    "result": [{"metric": {"__name__": "up"}, "values": [[1763290680, "1"], [1763290740, "2"], [1763290800, "3"]]}],
}


def test_a_range_has_a_step_that_suits_it(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.data("/api/v1/query_range", MATRIX)
    assert cli.main(["query", "up", "--start", "-1h"]) == ExitCode.OK
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["series", "time", "value"],
        ["up", "2025-11-16T10:58:00Z", "1"],
        ["up", "2025-11-16T10:59:00Z", "2"],
        ["up", "2025-11-16T11:00:00Z", "3"],
    ]
    assert cli.main(["query", "up", "--start", "-1h", "--end=-30m", "--step", "15"]) == ExitCode.OK
    requests = [dict(parameters) for _, _, parameters in node.requests]
    assert [(request["start"], request["end"], request["step"]) for request in requests] == [
        ("1763287200", "1763290800", "60"),
        ("1763287200", "1763289000", "15"),
    ]


def test_json_has_separate_warnings_and_infos_like_the_api(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    empty_result = {"resultType": "vector", "result": []}
    node.data("/api/v1/query", empty_result, warnings=["a shard is away"], infos=["look here"])
    assert cli.main(["query", "up", "--output", "json"]) == ExitCode.OK
    captured = json.loads(capsys.readouterr().out)
    assert (captured["warnings"], captured["infos"]) == (["a shard is away"], ["look here"])


def test_csv_has_a_column_for_each_label(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    result = [
        {"metric": {"__name__": "up", "job": 'a,"b"'}, "value": [1763290800, "1"]},
        {"metric": {"zone": "x\x1b[1m\ny"}, "value": [1763290800.5, "NaN"]},
    ]
    node.data("/api/v1/query", {"resultType": "vector", "result": result}, infos=["look here"])
    assert cli.main(["query", "up or x", "--output", "csv"]) == ExitCode.OK
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        "__name__,job,zone,time,value",
        'up,"a,""b""",,2025-11-16T11:00:00Z,1',
        ",,x\\x1b[1m\\x0ay,2025-11-16T11:00:00.500Z,NaN",
    ]
    assert captured.err == "note: look here\n"
    assert cli.main(["query", "up or x", "--output", "csv", "--limit", "1"]) == ExitCode.OK
    assert len(capsys.readouterr().out.splitlines()) == 2, "the header is not counted"


def test_an_empty_csv_has_a_header(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    node.data("/api/v1/query", {"resultType": "vector", "result": []})
    assert cli.main(["query", "up", "--output", "csv"]) == ExitCode.OK
    assert capsys.readouterr().out == "time,value\n"


@pytest.mark.parametrize(("kind", "value"), [("scalar", "42"), ("string", "tide")])
def test_a_scalar_and_a_string_are_values_without_labels(
    node: FakeNode, capsys: pytest.CaptureFixture[str], kind: str, value: str
) -> None:
    node.data("/api/v1/query", {"resultType": kind, "result": [1763290800, value]})
    assert cli.main(["query", "x"]) == ExitCode.OK
    assert capsys.readouterr().out.splitlines()[1].split() == ["{}", "2025-11-16T11:00:00Z", value]


def test_a_plot_is_of_a_range(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", "up", "--output", "plot"]) == ExitCode.USAGE
    assert "--output plot needs a range: give --start" in capsys.readouterr().err
    assert node.requests == []


def test_an_error_in_the_query_is_shown_at_its_position(node: FakeNode, capsys: pytest.CaptureFixture[str]) -> None:
    reason = 'invalid parameter "query": 2:7: parse error: unexpected <by>'
    node.fault("/api/v1/query", 400, "bad_data", reason)
    assert cli.main(["query", "sum(up)\n\t+ sum by by (job)"]) == ExitCode.USAGE
    assert capsys.readouterr().err.splitlines() == [f"error: {reason}", "   + sum by by (job)", "        ^"]
    assert cli.main(["query", "sum(up)\n\t+ sum by by (job)", "--output", "json"]) == ExitCode.USAGE
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["line"], error["column"]) == (2, 7)


def test_a_range_since_yesterday_has_a_step_that_misses_no_sample(node: FakeNode) -> None:
    node.data("/api/v1/query_range", MATRIX)
    assert cli.main(["query", "up", "--start", "yesterday"]) == ExitCode.OK
    [(_, _, parameters)] = node.requests
    assert dict(parameters)["step"] == "300"


def test_a_range_is_plotted_on_a_terminal(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.data("/api/v1/query_range", MATRIX)
    for arguments, plotted in (([], True), (["--output", "text"], False), (["--output", "plot"], True)):
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert cli.main(["query", "up", "--start", "-2m", "--step", "1m", *arguments]) == ExitCode.OK
        assert isinstance(sys.stdout, Terminal)
        assert ("▁▅█" in sys.stdout.getvalue()) == plotted


def test_a_terminal_that_can_not_show_a_plot_gets_a_table(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.data("/api/v1/query_range", MATRIX)
    monkeypatch.setattr(Terminal, "encoding", "iso-8859-1")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert cli.main(["query", "up", "--start", "-2m"]) == ExitCode.OK
    assert isinstance(sys.stdout, Terminal)
    assert "2025-11-16T11:00:00Z" in sys.stdout.getvalue()
    assert "▁" not in sys.stdout.getvalue()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["query", "up", "--time", "soon"],
            "Invalid value for --time: 'soon' is not a valid time; use 2026-11-16T10:00:00Z",
        ),
        (["query", "up", "--start", "-1h", "--time", "now"], "--time and --start exclude each other"),
        (["query", "up", "--end", "now"], "--end and --step need --start"),
        (["query", "up", "--step", "15s"], "--end and --step need --start"),
        (["query", "up", "--start", "-1h", "--step", "0"], "Invalid value for --step: '0' is not positive"),
        (["query", "up", "--start", "now", "--end=-1h"], "Invalid value for --end: -1h is before --start"),
        (["series", "up", "--start", "now", "--end", "yesterday"], "yesterday is before --start"),
        (["series"], "Missing argument 'SELECTOR...'"),
        (["values"], "Missing argument 'LABEL'"),
        (["values", ""], "the label name is empty"),
        (["labels", "--limit", "-1"], "-1 is not in the range"),
        (["labels", "--url", "node-1:9460"], "does not begin with http://"),
        (["labels", "--token-file", "/no/such/file"], "/no/such/file can't be read"),
    ],
)
def test_an_invalid_command_line_sends_no_request(
    node: FakeNode, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert cli.main(arguments) == ExitCode.USAGE
    assert message in capsys.readouterr().err
    assert node.requests == []


def test_the_token_of_the_settings_is_sent_only_to_the_node_of_the_settings(
    node: FakeNode, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.data("/api/v1/labels", [])
    monkeypatch.setenv("STRANDLINE_HTTP__READ_TOKEN_FILE", str(token_file))
    assert cli.main(["labels"]) == ExitCode.OK
    assert cli.main(["labels", "--url", node.url]) == ExitCode.OK
    assert cli.main(["labels", "--url", node.url, "--token-file", str(token_file)]) == ExitCode.OK
    assert [headers.get("Authorization") for headers in node.headers] == [f"Bearer {TOKEN}", None, f"Bearer {TOKEN}"]


def test_a_url_makes_the_settings_unnecessary(node: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    node.data("/api/v1/labels", [])
    monkeypatch.setenv("STRANDLINE_HTTP__CONNECTIONS", "nonsense")
    assert cli.main(["labels"]) == ExitCode.USAGE
    assert cli.main(["labels", "--url", node.url]) == ExitCode.OK


def test_a_token_is_hidden_even_if_the_node_repeats_it(
    node: FakeNode, token_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node.fault("/api/v1/labels", 422, "execution", f"who is {TOKEN}?")
    node.data("/api/v1/series", [{"a": TOKEN}], f"hello {TOKEN}")
    for arguments in (["labels"], ["series", "up"], ["series", "up", "--output", "json"]):
        cli.main([*arguments, "--token-file", str(token_file)])
        captured = capsys.readouterr()
        assert TOKEN not in captured.out + captured.err
        assert "(hidden)" in captured.out + captured.err


def test_with_tls_the_node_is_verified_by_the_certificate_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    certificates = make_certificates(tmp_path / "ca")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_bundle)
    with fake_node(context) as node:
        node.data("/api/v1/labels", ["a"])
        monkeypatch.setenv("STRANDLINE_HTTP__NODE_ADDRESS", f"127.0.0.1:{node.server_port}")
        monkeypatch.setenv("STRANDLINE_HTTP__TLS_CERTIFICATE_FILE", str(tmp_path / "ca" / "server.pem"))
        monkeypatch.setenv("STRANDLINE_HTTP__TLS_KEY_FILE", str(tmp_path / "ca" / "server.key"))
        assert cli.main(["labels"]) == ExitCode.OK
        assert cli.main(["labels", "--url", node.url, "--ca-file", str(certificates.ca)]) == ExitCode.OK
        assert cli.main(["labels", "--url", node.url]) == ExitCode.FAILED
        assert "--ca-file" in capsys.readouterr().err


def test_without_a_node_the_remedy_is_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    with fake_node() as stopped:
        url = stopped.url
    assert cli.main(["query", "up", "--url", url]) == ExitCode.FAILED
    assert capsys.readouterr().err == (
        f"error: no node answers at {url}: Connection refused\n"
        "  Start it with `strandline node`, or give its address with --url\n"
    )


def test_a_node_that_is_not_ready_is_reported_with_its_reason(
    node: FakeNode, capsys: pytest.CaptureFixture[str]
) -> None:
    node.fault("/api/v1/query", 503, "unavailable", "no shard can answer: shard 0 is replaying")
    assert cli.main(["query", "up", "--output", "json"]) == ExitCode.NOT_READY
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["type"], error["exit_code"]) == ("NodeNotReady", 6)
    assert "shard 0 is replaying" in error["message"]


def test_a_selector_that_the_node_refuses_is_a_wrong_command_line(
    node: FakeNode, capsys: pytest.CaptureFixture[str]
) -> None:
    node.fault("/api/v1/query", 400, "bad_data", "'rate(up[5m])' is not a plain selector")
    assert cli.main(["query", "rate(up[5m])"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "error: 'rate(up[5m])' is not a plain selector\n"


@pytest.mark.parametrize("name", ["series", "labels", "values", "query"])
def test_the_help_explains_the_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == ExitCode.OK
    captured = capsys.readouterr().out
    for code in (ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.NOT_READY):
        assert f"    {code.value:<4}{EXIT_CODES[code]}\n" in captured

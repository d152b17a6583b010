"""`strandline completion`, and the completions."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.errors import ExitCode
from strandline.node.cli import main as cli
from strandline.node.settings import load
from support.fake_node import FakeNode, fake_node

pytestmark = pytest.mark.unit

HEAVY = {"pyspark", "numba", "lucene", "cassandra", "numpy", "pyarrow", "confluent_kafka", "pydantic", "aiohttp"}


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(load, "DEFAULT_FILE", tmp_path / "none.toml")
    for name in [name for name in os.environ if name.startswith("STRANDLINE_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with fake_node() as running:
        yield running


def completions(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The completions that bash gets for an incomplete line."""
    monkeypatch.setenv("COMP_WORDS", " ".join(("strandline", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert cli.main(["completion", "bash", "--answer"]) == ExitCode.OK
    printed = capsys.readouterr()
    assert printed.err == ""
    return [line.removeprefix("plain,") for line in printed.out.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_this_command_and_is_all_that_is_printed(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["completion", shell]) == ExitCode.OK
    script = capsys.readouterr().out
    program = "$1" if shell == "bash" else "strandline"
    assert f"{program} completion {shell} --answer 2>/dev/null)" in script
    assert "_complete " not in script
    assert "%(" not in script


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "tcsh"]) == ExitCode.USAGE
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_names_of_commands_are_offered(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert completions(monkeypatch, capsys, "re") == ["ready", "recover"]
    printed = {name for name, command in cli.COMMANDS.items() if not command.hidden}
    assert set(completions(monkeypatch, capsys, '""')) == printed
    assert "front" not in printed, "an internal command of the node"
    assert completions(monkeypatch, capsys, "--output", "json", "lab") == ["labels"]


def test_options_and_their_words_are_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "--version" in completions(monkeypatch, capsys, "--")
    assert completions(monkeypatch, capsys, "labels", "--u") == ["--url"]
    assert completions(monkeypatch, capsys, "labels", "--output", "j") == ["json"]
    assert completions(monkeypatch, capsys, "labels", "--config", "a.toml", "--ca-file", "x") == ["file,x"]


def test_an_invalid_line_has_no_completions_and_no_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completions(monkeypatch, capsys, "bogus", "x") == []
    monkeypatch.delenv("COMP_WORDS")
    assert cli.main(["completion", "bash", "--answer"]) == ExitCode.OK
    assert capsys.readouterr().out.strip() == ""


def test_label_names_are_requested_from_the_node(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.data("/api/v1/labels", ["__name__", "instance", "interval", "in$(rm)", "job"])
    assert completions(monkeypatch, capsys, "values", "--url", node.url, "in") == ["instance", "interval"]


def test_metric_names_are_requested_from_the_node(
    node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    node.data("/api/v1/label/__name__/values", ["node_cpu", "node_load1"])
    for command in ("query", "series", "labels"):
        assert completions(monkeypatch, capsys, command, "--url", node.url, "node_l") == ["node_load1"]
    assert node.requests[0][2] == [("match[]", '{__name__=~"node_l.*"}'), ("limit", "201")]
    node.requests.clear()
    assert completions(monkeypatch, capsys, "query", "--url", node.url, "'up{'") == []
    assert node.requests == [], "there are no completions inside braces"


def test_without_a_node_there_are_no_completions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_node() as gone:
        url = gone.url
    assert completions(monkeypatch, capsys, "values", "--url", url, "in") == []
    assert completions(monkeypatch, capsys, "values", "--url", "nonsense", "in") == []


def test_completing_a_command_imports_no_slow_modules() -> None:
    script = (
        "import sys; from strandline.node.cli.main import main; code = main(['completion', 'bash', '--answer']);"
        "print(code, *sorted({name.split('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    environ = {**os.environ, "COMP_WORDS": "strandline re", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == ["plain,ready", "plain,recover"]
    assert HEAVY & set(done.stderr.split()) == set()


def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    program = tmp_path / "strandline"
    call = "import sys; from strandline.node.cli.main import main; sys.exit(main())"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{call}' \"$@\"\n")
    program.chmod(0o755)
    script = (
        "source <(strandline completion bash); COMP_WORDS=(strandline re); COMP_CWORD=1; "
        '_strandline_completion strandline; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env=environ)
    assert done.stdout.split() == ["ready", "recover"]

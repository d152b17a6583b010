import io
import sys
from pathlib import Path

import pytest

from strandline.setup.progress import Progress, Runner, StepFailed

pytestmark = pytest.mark.unit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_step_that_only_checked_is_ready_and_one_that_worked_is_done() -> None:
    stream = io.StringIO()
    progress = Progress(2, stream)
    with progress.step("Jars"):
        pass
    with progress.step("Wheels"):
        progress.working("fetching")
        progress.tick()
    lines = stream.getvalue().splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["[1/2]", "Jars", "ready"],
        ["[2/2]", "Wheels", "fetching"],
        ["[2/2]", "Wheels", "done"],
    ]
    assert lines[0].endswith(" s")


def test_a_terminal_shows_one_line_per_step() -> None:
    stream = Terminal()
    progress = Progress(1, stream)
    with progress.step("Wheels"):
        progress.working("a long description of work")
        progress.tick()
    assert stream.getvalue().count("\n") == 1
    final = stream.getvalue().rstrip("\n").rsplit("\r", 1)[1]
    assert "done" in final
    assert "description" not in final


def test_a_failed_step_is_marked() -> None:
    stream = io.StringIO()
    with pytest.raises(ValueError, match="no"), Progress(1, stream).step("Jars"):
        raise ValueError("no")
    assert "FAILED" in stream.getvalue()


def test_a_failed_command_shows_the_end_of_its_own_output_and_where_the_rest_is(tmp_path: Path) -> None:
    runner = Runner(tmp_path / "logs" / "step.log")
    runner.run([sys.executable, "-c", "print('output of an earlier command')"], env={})
    with pytest.raises(StepFailed) as caught:
        runner.run([sys.executable, "-c", "for i in range(100): print('line', i)\nraise SystemExit(7)"], env={})
    assert "ended with exit code 7" in caught.value.message
    assert "line 99" in caught.value.message
    assert "line 50" not in caught.value.message
    assert "earlier command" not in caught.value.message
    assert str(runner.log) in caught.value.remedy
    assert "line 50" in runner.log.read_text()


def test_a_running_command_updates_the_progress(tmp_path: Path) -> None:
    ticked = tmp_path / "ticked"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(ticked)!r}).exists(): time.sleep(0.01)"
    Runner(tmp_path / "log", ticked.touch).run([sys.executable, "-c", wait], env={})
    assert ticked.exists()

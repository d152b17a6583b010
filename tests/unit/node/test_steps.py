"""Steps on a terminal, with a progress bar."""

import io

import pytest
from rich.console import Console

from strandline.clock import ManualClock
from strandline.node.steps import LineSteps, LiveSteps

pytestmark = pytest.mark.unit


def shown_at(fraction: float | None) -> str:
    """The terminal's output for a step with this progress."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    clock = ManualClock(0)
    with LiveSteps("Working", console, clock) as steps, steps.step("Shard 3") as step:
        step.fraction, step.note = fraction, "replaying"
        clock.sleep(1)
        steps.refresh()
        return stream.getvalue()


@pytest.mark.parametrize(("fraction", "percent", "filled"), [(0.0, "0%", 0), (1 / 3, "33%", 8), (1.0, "100%", 24)])
def test_the_length_of_a_bar_is_the_progress(fraction: float, percent: str, filled: int) -> None:
    last = shown_at(fraction).splitlines()[-1]
    assert percent in last
    assert "replaying" in last
    assert (last.count("━"), last.count("─")) == (filled, 24 - filled)


def test_a_step_without_a_known_total_has_no_bar() -> None:
    last = shown_at(None).splitlines()[-1]
    assert "Shard 3" in last
    assert "─" not in last


def test_a_log_has_no_bars() -> None:
    stream = io.StringIO()
    with LineSteps("Working", stream, ManualClock(0)) as steps, steps.step("Shard 3") as step:
        step.fraction, step.note = 0.5, "whole"
    assert stream.getvalue() == "Working\n  Shard 3 (whole): 0.0 s\n"

"""Evaluates the test runs for a fault. Pure functions over values."""

import re
from dataclasses import dataclass
from enum import StrEnum

from mutants.catalogue import Mutant
from mutants.checkout_copy import CommandResult

_FAILED = 1
_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", re.MULTILINE)
# Such a fault is invalid: Python has caught it, not the expectation of a test.
_BROKEN = re.compile(r"^(?:NameError|ImportError|ModuleNotFoundError|SyntaxError|IndentationError|UnboundLocalError)\b")


class Outcome(StrEnum):
    """The outcome of a fault."""

    CAUGHT = "caught"
    MISSED = "MISSED"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class MutantResult:
    """The outcome of one fault, and the test that caught it or the reason; with the output if nothing caught it."""

    mutant: Mutant
    outcome: Outcome
    by: str
    seconds: float
    output: str = ""


def outcome_of_tests(result: CommandResult) -> tuple[Outcome, str]:
    """The outcome of a fault by a run of pytest, and the test that failed. A run that finds no tests, can't collect
    them, or does not end with a failed test is invalid.
    """
    if result.code == 0:
        return Outcome.MISSED, "all named tests pass"
    found = _FIRST_FAILURE.search(result.output)
    test, reason = (found[1], found[2] or "") if found is not None else ("", "")
    if result.code != _FAILED or not test or _BROKEN.match(reason):
        return Outcome.INVALID, f"pytest ended with {result.code}: {reason or 'see its output'}"
    path, _, name = test.partition("::")
    return Outcome.CAUGHT, f"{path.rpartition('/')[2]}::{name}"


def outcome_of_simulation(result: CommandResult) -> tuple[Outcome, str]:
    """The outcome by a run of the seeded simulation, whose exit code is 1 if a seed breaks a property."""
    if result.code == 0:
        return Outcome.MISSED, "no seed breaks a property"
    if result.code != _FAILED:
        return Outcome.INVALID, f"the simulation ended with {result.code}"
    return Outcome.CAUGHT, "the simulation"

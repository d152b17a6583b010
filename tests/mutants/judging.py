"""What became of a fault, by the runs of what was to catch it. Pure functions over values."""

import re
from dataclasses import dataclass
from enum import StrEnum

from mutants.catalogue import Mutant
from mutants.checkout_copy import Ran

_FAILED = 1
_FIRST_FAILURE = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - (.*))?$", re.MULTILINE)
# A fault that can't even run has been caught by Python, and not by what a test expects.
_BROKEN = re.compile(r"^(?:NameError|ImportError|ModuleNotFoundError|SyntaxError|IndentationError|UnboundLocalError)\b")


class Outcome(StrEnum):
    """What became of a fault."""

    CAUGHT = "caught"
    MISSED = "MISSED"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one fault: with what caught it, or with what there is to see where nothing has."""

    mutant: Mutant
    outcome: Outcome
    by: str
    seconds: float
    output: str = ""


def judge_tests(ran: Ran) -> tuple[Outcome, str]:
    """What a run of pytest says of a fault, and the test that failed. A run that found no tests, could not collect
    them, or ended in another way than by a failure says nothing.
    """
    if ran.code == 0:
        return Outcome.MISSED, "all named tests pass"
    found = _FIRST_FAILURE.search(ran.output)
    test, reason = (found[1], found[2] or "") if found is not None else ("", "")
    if ran.code != _FAILED or not test or _BROKEN.match(reason):
        return Outcome.INVALID, f"pytest ended with {ran.code}: {reason or 'see its output'}"
    path, _, name = test.partition("::")
    return Outcome.CAUGHT, f"{path.rpartition('/')[2]}::{name}"


def judge_simulation(ran: Ran) -> tuple[Outcome, str]:
    """The same of a run of the seeded simulation, which ends with 1 once a seed has broken a property."""
    if ran.code == 0:
        return Outcome.MISSED, "no seed breaks a property"
    if ran.code != _FAILED:
        return Outcome.INVALID, f"the simulation ended with {ran.code}"
    return Outcome.CAUGHT, "the simulation"

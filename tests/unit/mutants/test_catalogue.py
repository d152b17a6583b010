"""The deliberate faults of `make mutants` can be applied, and the harness recognises a caught fault."""

from pathlib import Path

import pytest

from mutants.catalogue import Edit, InvalidMutant, Mutant, load_mutants, mutated, problems
from mutants.checkout_copy import CheckoutCopy, CommandResult
from mutants.results import Outcome, outcome_of_simulation, outcome_of_tests

pytestmark = pytest.mark.unit


def a_mutant(*edits: Edit) -> Mutant:
    return Mutant("a-fault", "area", "A rule", "recovery/module.py", edits, ("tests/unit",))


def test_every_fault_fits_its_file_once_and_the_tests_named_for_it_exist() -> None:
    assert [problem for mutant in load_mutants() for problem in problems(mutant)] == []


def test_there_are_faults_in_all_areas_that_keep_data() -> None:
    faults = load_mutants()
    assert len(faults) >= 70
    wanted = {"cuts", "recovery", "jobs", "clocks", "flush", "ownership", "index", "reads", "store", "gateway"}
    assert {fault.area for fault in faults} >= wanted


@pytest.mark.parametrize("source", ["value = 2\n", "value = 1\nvalue = 1\n"])
def test_a_fault_whose_text_does_not_occur_exactly_once_is_named(source: str) -> None:
    with pytest.raises(InvalidMutant, match=r"a-fault: recovery/module\.py has this [02] times"):
        mutated(a_mutant(Edit("value = 1", "value = 3")), source)


def test_a_fault_is_applied_to_the_copy_temporarily_and_leaves_no_trace(tmp_path: Path) -> None:
    source = tmp_path / "recovery" / "module.py"
    source.parent.mkdir()
    source.write_text("value = 1\n")
    before = source.stat().st_mtime_ns
    with CheckoutCopy(tmp_path).applied(a_mutant(Edit("value = 1", "value = 3"))):
        assert source.read_text() == "value = 3\n"
    assert source.read_text() == "value = 1\n"
    assert source.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("code", "output", "outcome", "by"),
    [
        (0, "3 passed", Outcome.MISSED, "all named tests pass"),
        (1, "FAILED tests/unit/test_a.py::test_b[c d] - assert 1 == 2", Outcome.CAUGHT, "test_a.py::test_b[c d]"),
        (1, "FAILED tests/unit/test_a.py::test_b - NameError: name", Outcome.INVALID, "ended with 1: NameError: name"),
        (1, "the interpreter was killed", Outcome.INVALID, "ended with 1"),
        (2, "ERROR tests/unit/test_a.py - SyntaxError", Outcome.INVALID, "ended with 2"),
        (3, "not the copy's code", Outcome.INVALID, "ended with 3"),
        (5, "no tests ran", Outcome.INVALID, "ended with 5"),
    ],
)
def test_only_a_test_that_fails_has_caught_a_fault(code: int, output: str, outcome: Outcome, by: str) -> None:
    found, by_test = outcome_of_tests(CommandResult(code, output))
    assert found is outcome
    assert by in by_test


def test_a_simulation_has_caught_a_fault_if_it_ends_with_1() -> None:
    assert [outcome_of_simulation(CommandResult(code, ""))[0] for code in (0, 1, 2)] == [
        Outcome.MISSED,
        Outcome.CAUGHT,
        Outcome.INVALID,
    ]

"""`make mutants`: applies each fault to a copy of the checkout and runs the tests that must catch it there."""

import argparse
import os
import queue
import shlex
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from mutants.catalogue import CHECKOUT, InvalidMutant, Mutant, load_mutants, problems
from mutants.checkout_copy import CheckoutCopy
from mutants.results import MutantResult, Outcome, outcome_of_simulation, outcome_of_tests

_ALL_CAUGHT, _NOT_ALL_CAUGHT, _CAN_NOT_RUN = 0, 1, 2
_SHOWN_LINES = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every fault was caught, 1 if not, 2 if the run failed."""
    options = _options(arguments)
    # Like an interrupt: the copies are removed once the tests that run in them have ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_CAN_NOT_RUN))
    try:
        mutants = _chosen(load_mutants(), options.only)
    except InvalidMutant as error:
        return _fail(str(error))
    if options.list:
        for mutant in mutants:
            _print(f"{mutant.name:<44} {mutant.file:<36} {mutant.breaks}")
        return _ALL_CAUGHT
    wrong = [problem for mutant in mutants for problem in problems(mutant)]
    if wrong:
        return _fail("\n".join(wrong))
    with tempfile.TemporaryDirectory(prefix="strandline-mutants-") as folder:
        first = CheckoutCopy.make(CHECKOUT, Path(folder) / "copy-1")
        if not options.no_baseline and not _passes_unchanged(first, mutants):
            return _CAN_NOT_RUN
        # Copied from the first one, which now has the kernels that the tests have compiled.
        others = [CheckoutCopy.make(first.root, Path(folder) / f"copy-{one}") for one in range(2, options.jobs + 1)]
        run = _Run([first, *others], shlex.split(options.simulation), len(mutants))
        results = run.run_all(mutants)
    return _report(results)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this fault, area or file (repeatable)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="number of parallel copies (default: 1)")
    parser.add_argument("--list", action="store_true", help="list the faults and run nothing")
    parser.add_argument("--no-baseline", action="store_true", help="don't run the tests without a fault first")
    parser.add_argument(
        "--simulation",
        default=os.environ.get("STRANDLINE_SIMULATION", f"{sys.executable} tests/strandline-sim --jobs 1"),
        metavar="COMMAND",
        help="the command of the seeded simulation, run in the copy with `--seeds N` for the faults that name seeds;"
        " exit code 1 is a broken property (default: $STRANDLINE_SIMULATION, else tests/strandline-sim; '' for none)",
    )
    return parser.parse_args(arguments)


def _chosen(mutants: Sequence[Mutant], only: Sequence[str]) -> list[Mutant]:
    unknown = [one for one in only if not any(one in _names(mutant) for mutant in mutants)]
    if unknown:
        raise InvalidMutant(f"unknown fault, area or file: {', '.join(unknown)}")
    return [mutant for mutant in mutants if not only or any(one in _names(mutant) for one in only)]


def _names(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.name, mutant.area, mutant.file


def _passes_unchanged(copy: CheckoutCopy, mutants: Iterable[Mutant]) -> bool:
    """Whether all named tests pass without a fault. A test that always fails catches nothing."""
    named = {test for mutant in mutants for test in mutant.tests}
    # Without the tests of a file that is itself named.
    tests = sorted(test for test in named if "::" not in test or test.partition("::")[0] not in named)
    _print(f"Without a fault: {len(tests)} files and tests")
    began = time.monotonic()
    result = copy.test(tests)
    if result.code != 0:
        _print(_tail(result.output))
        _print("The named tests have to pass without a fault, but they fail.")
        return False
    _print(f"They pass, in {time.monotonic() - began:.0f} s.")
    return True


@dataclass
class _Run:
    """Runs all faults in parallel, one in each copy."""

    copies: Sequence[CheckoutCopy]
    simulation: Sequence[str]
    total: int
    _free: "queue.SimpleQueue[CheckoutCopy]" = field(default_factory=queue.SimpleQueue)
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run_all(self, mutants: Sequence[Mutant]) -> list[MutantResult]:
        """The result of each fault, in the order of `mutants`."""
        for copy in self.copies:
            self._free.put(copy)
        results: dict[str, MutantResult] = {}
        with ThreadPoolExecutor(len(self.copies)) as threads:
            try:
                for done in as_completed([threads.submit(self._run_mutant, mutant) for mutant in mutants]):
                    one = done.result()
                    results[one.mutant.name] = one
                    at = f"[{len(results):>3}/{self.total}]"
                    _print(f"{at} {one.outcome:<7} {one.mutant.name:<44} {one.seconds:5.1f} s  {one.by}")
                    if one.outcome is not Outcome.CAUGHT:
                        _print(f"          {one.mutant.breaks}\n{one.output}".rstrip())
            except BaseException:
                self._stopped.set()
                raise
        return [results[mutant.name] for mutant in mutants]

    def _run_mutant(self, mutant: Mutant) -> MutantResult:
        copy = self._free.get()
        try:
            began = time.monotonic()
            if self._stopped.is_set():
                return MutantResult(mutant, Outcome.INVALID, "not run", 0.0)
            with copy.applied(mutant):
                result = copy.test(mutant.tests)
                outcome, by = outcome_of_tests(result)
                if outcome is Outcome.CAUGHT and mutant.simulation and self.simulation:
                    result = copy.run([*self.simulation, "--seeds", str(mutant.simulation)])
                    outcome, found = outcome_of_simulation(result)
                    by = f"{by}; {found}"
            output = "" if outcome is Outcome.CAUGHT else _tail(result.output)
            return MutantResult(mutant, outcome, by, time.monotonic() - began, output)
        finally:
            self._free.put(copy)


def _report(results: Sequence[MutantResult]) -> int:
    counts = Counter((one.mutant.area, one.outcome) for one in results)
    _print(f"\n{'area':<16}" + "".join(f"{outcome:>9}" for outcome in Outcome))
    for area in dict.fromkeys(one.mutant.area for one in results):
        _print(f"{area:<16}" + "".join(f"{counts[area, outcome]:>9}" for outcome in Outcome))
    left = [one for one in results if one.outcome is not Outcome.CAUGHT]
    for one in left:
        _print(f"{one.outcome:<8} {one.mutant.name}: {one.mutant.breaks}")
    _print(f"{len(results) - len(left)} of {len(results)} faults were caught.")
    return _NOT_ALL_CAUGHT if left else _ALL_CAUGHT


def _tail(output: str) -> str:
    return "\n".join(f"          | {line}" for line in output.rstrip().splitlines()[-_SHOWN_LINES:])


def _fail(reason: str) -> int:
    _print(reason)
    return _CAN_NOT_RUN


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

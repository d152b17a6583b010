"""`make mutants`: apply each fault to a copy of the checkout, and run what must catch it there."""

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

from mutants.catalogue import CHECKOUT, BadMutant, Mutant, load_mutants, problems
from mutants.checkout_copy import CheckoutCopy
from mutants.judging import Judged, Outcome, judge_simulation, judge_tests

_ALL_CAUGHT, _NOT_ALL_CAUGHT, _CAN_NOT_RUN = 0, 1, 2
_SHOWN_LINES = 30


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every fault was caught, 1 if not, 2 if it could not be told."""
    options = _options(arguments)
    # As an interrupt does: the copies go, once the tests that run in them have ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_CAN_NOT_RUN))
    try:
        mutants = _chosen(load_mutants(), options.only)
    except BadMutant as error:
        return _fail(str(error))
    if options.list:
        for mutant in mutants:
            _say(f"{mutant.name:<44} {mutant.file:<36} {mutant.breaks}")
        return _ALL_CAUGHT
    wrong = [problem for mutant in mutants for problem in problems(mutant)]
    if wrong:
        return _fail("\n".join(wrong))
    with tempfile.TemporaryDirectory(prefix="strandline-mutants-") as folder:
        first = CheckoutCopy.make(CHECKOUT, Path(folder) / "copy-1")
        if not options.no_baseline and not _pass_without_a_fault(first, mutants):
            return _CAN_NOT_RUN
        # Of the first one: it has the kernels that the tests have compiled by now.
        others = [CheckoutCopy.make(first.root, Path(folder) / f"copy-{one}") for one in range(2, options.jobs + 1)]
        run = _Run([first, *others], shlex.split(options.simulation), len(mutants))
        judged = run.judge_all(mutants)
    return _report(judged)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="this fault, area or file; several")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="so many copies at work (default: 1)")
    parser.add_argument("--list", action="store_true", help="show the faults and run nothing")
    parser.add_argument("--no-baseline", action="store_true", help="don't run the tests without a fault first")
    parser.add_argument(
        "--simulation",
        default=os.environ.get("STRANDLINE_SIMULATION", f"{sys.executable} tests/strandline-sim --jobs 1"),
        metavar="COMMAND",
        help="the seeded simulation, run in the copy with `--seeds N` behind it for the faults that name seeds; it ends"
        " with 1 if it has found something (default: $STRANDLINE_SIMULATION, else tests/strandline-sim; '' for none)",
    )
    return parser.parse_args(arguments)


def _chosen(mutants: Sequence[Mutant], only: Sequence[str]) -> list[Mutant]:
    unknown = [one for one in only if not any(one in _names(mutant) for mutant in mutants)]
    if unknown:
        raise BadMutant(f"there is no fault, area or file {', '.join(unknown)}")
    return [mutant for mutant in mutants if not only or any(one in _names(mutant) for one in only)]


def _names(mutant: Mutant) -> tuple[str, str, str]:
    return mutant.name, mutant.area, mutant.file


def _pass_without_a_fault(copy: CheckoutCopy, mutants: Iterable[Mutant]) -> bool:
    """Whether all named tests pass as the checkout is: what fails anyway catches nothing."""
    named = {test for mutant in mutants for test in mutant.tests}
    # Not those of a file that is named as a whole.
    tests = sorted(test for test in named if "::" not in test or test.partition("::")[0] not in named)
    _say(f"Without a fault: {len(tests)} files and tests")
    began = time.monotonic()
    ran = copy.test(tests)
    if ran.code != 0:
        _say(_tail(ran.output))
        _say("The named tests must pass without a fault, and they do not.")
        return False
    _say(f"They pass, in {time.monotonic() - began:.0f} s.")
    return True


@dataclass
class _Run:
    """All faults, in as many copies as there are."""

    copies: Sequence[CheckoutCopy]
    simulation: Sequence[str]
    total: int
    _free: "queue.SimpleQueue[CheckoutCopy]" = field(default_factory=queue.SimpleQueue)
    _over: threading.Event = field(default_factory=threading.Event)

    def judge_all(self, mutants: Sequence[Mutant]) -> list[Judged]:
        """What became of each, in the order in which they were given."""
        for copy in self.copies:
            self._free.put(copy)
        judged: dict[str, Judged] = {}
        with ThreadPoolExecutor(len(self.copies)) as threads:
            try:
                for done in as_completed([threads.submit(self._judge, mutant) for mutant in mutants]):
                    one = done.result()
                    judged[one.mutant.name] = one
                    at = f"[{len(judged):>3}/{self.total}]"
                    _say(f"{at} {one.outcome:<7} {one.mutant.name:<44} {one.seconds:5.1f} s  {one.by}")
                    if one.outcome is not Outcome.CAUGHT:
                        _say(f"          {one.mutant.breaks}\n{one.output}".rstrip())
            except BaseException:
                self._over.set()
                raise
        return [judged[mutant.name] for mutant in mutants]

    def _judge(self, mutant: Mutant) -> Judged:
        copy = self._free.get()
        try:
            began = time.monotonic()
            if self._over.is_set():
                return Judged(mutant, Outcome.INVALID, "it was not run", 0.0)
            with copy.having(mutant):
                ran = copy.test(mutant.tests)
                outcome, by = judge_tests(ran)
                if outcome is Outcome.CAUGHT and mutant.simulation and self.simulation:
                    ran = copy.run([*self.simulation, "--seeds", str(mutant.simulation)])
                    outcome, found = judge_simulation(ran)
                    by = f"{by}; {found}"
            output = "" if outcome is Outcome.CAUGHT else _tail(ran.output)
            return Judged(mutant, outcome, by, time.monotonic() - began, output)
        finally:
            self._free.put(copy)


def _report(judged: Sequence[Judged]) -> int:
    counts = Counter((one.mutant.area, one.outcome) for one in judged)
    _say(f"\n{'area':<16}" + "".join(f"{outcome:>9}" for outcome in Outcome))
    for area in dict.fromkeys(one.mutant.area for one in judged):
        _say(f"{area:<16}" + "".join(f"{counts[area, outcome]:>9}" for outcome in Outcome))
    left = [one for one in judged if one.outcome is not Outcome.CAUGHT]
    for one in left:
        _say(f"{one.outcome:<8} {one.mutant.name}: {one.mutant.breaks}")
    _say(f"{len(judged) - len(left)} of {len(judged)} faults were caught.")
    return _NOT_ALL_CAUGHT if left else _ALL_CAUGHT


def _tail(output: str) -> str:
    return "\n".join(f"          | {line}" for line in output.rstrip().splitlines()[-_SHOWN_LINES:])


def _fail(reason: str) -> int:
    _say(reason)
    return _CAN_NOT_RUN


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

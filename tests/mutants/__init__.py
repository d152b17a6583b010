"""Deliberate faults, and a harness that runs the tests named for each of them: every fault must make one of them fail.

`make mutants` runs it, outside of `make test`. Tools that change operators at random make thousands of mutants, most of
which break no rule that anything promises, and run all tests against each. These faults are written by hand: each is a
mistake that a programmer might make, breaks one rule of the design, and names the tests that hold that rule.

The faults lie in `*.toml`, by area. `catalogue` reads them, `checkout_copy` applies them to copies of the checkout,
`judging` says what a run of tests means, and `__main__` is the command.
"""

"""Deliberate faults, and a harness that runs the tests named for each fault: one of them has to fail.

`make mutants` runs it; `make test` does not. Tools that change operators at random generate thousands of mutants, most
of which break no promised rule, and run all tests for each. These faults are written by hand: each is a mistake that a
programmer might make, breaks one rule of the design, and names the tests of that rule.

The faults are in `*.toml`, by area. `catalogue` reads them, `checkout_copy` applies them to copies of the checkout,
`results` evaluates a test run, and `__main__` is the command.
"""

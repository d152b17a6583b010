"""The exceptions of a simulation."""


class Violation(AssertionError):  # noqa: N818 - a property is violated; the simulation itself works
    """A guarantee was violated."""


class Crash(BaseException):
    """The process has crashed."""

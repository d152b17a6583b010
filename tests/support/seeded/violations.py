"""What a simulation raises."""


class Violation(AssertionError):  # noqa: N818 - a property is violated; the simulation itself works
    """Something happened that may never happen."""


class Crash(BaseException):
    """The process is gone, as of now."""

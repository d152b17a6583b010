"""What may come of asking a node, other than an answer."""

from strandline.errors import ExitCode, Fatal, Retryable


class NodeUnreachable(Retryable):
    """Nobody answers at the address, or not in time."""


class NodeNotReady(Retryable):
    """The node is there, and can't answer questions about data yet. Its own reason is the message."""

    exit_code = ExitCode.NOT_READY


class NodeBusy(Retryable):
    """The node gave the question up: it took too long, or too much is asked of it now."""


class NodeRefused(Fatal):
    """The node understood, and will not: a limit, or an expression that is too costly."""


class QuestionWrong(Fatal):
    """The node can't make sense of the question."""

    exit_code = ExitCode.USAGE


class AccessDenied(Fatal):
    """The token is missing, or not the right one."""


class NodeUntrusted(Fatal):
    """TLS: who answers can't show that it is the node."""


class NotANode(Fatal):
    """Somebody answers, but not as Prometheus' API does."""

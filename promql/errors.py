"""What can be wrong with a query while it is evaluated."""

from strandline.errors import ExitCode, Fatal


class EvaluationError(Fatal):
    """The query is sound, but these series or these parameters give no answer."""

    exit_code = ExitCode.USAGE

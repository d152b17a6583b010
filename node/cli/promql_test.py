"""`strandline promql test FILE...`: runs test scripts for queries."""

from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.promql_tools.test_report import ScriptReport, TestReport
from strandline.promql.testing.commands import Command as ScriptCommand
from strandline.promql.testing.errors import ScriptError
from strandline.promql.testing.running import run
from strandline.promql.testing.script_parser import parse_script


@click.command(
    cls=Command,
    help=help_with(
        "Run test scripts in the format of Prometheus' promqltest: load, eval instant, eval range, clear and expect. "
        "Each evaluation is run with the series split over 1, 2 and 5 shards, and differences are shown with file and "
        "line. Evaluations that need native histograms or a feature flag of Prometheus are skipped and counted "
        "separately. Nothing is run if a file is unreadable or invalid.",
        "strandline promql test rules.test",
        "strandline promql test tests/*.test --output json",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@pass_context
def command(context: Context, *, files: tuple[Path, ...]) -> ExitCode:
    """Run."""
    scripts = [(str(file), _commands(file)) for file in files]
    report = TestReport.of(tuple(ScriptReport.of(name, list(run(commands))) for name, commands in scripts))
    context.output.result(report)
    return report.exit_code


def _commands(file: Path) -> tuple[ScriptCommand, ...]:
    try:
        return parse_script(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file} is not valid UTF-8 at byte {error.start}") from error
    except ScriptError as error:
        raise ScriptError(f"{file}:{error.line}: {error.message}", error.line) from error

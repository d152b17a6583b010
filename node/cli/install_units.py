"""`strandline install-units`: writes systemd units with the paths of this installation."""

import pwd
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from strandline.errors import ExitCode
from strandline.node.cli.context import Context, pass_context
from strandline.node.cli.exit_codes import exit_codes
from strandline.node.cli.options import Command, help_with
from strandline.node.systemd.installing import UnitsReport, found_files, write_files
from strandline.node.systemd.units import UnitTarget, hidden_by_private_tmp, private_folders, units
from strandline.setup.installation import Installation

_SEE_DOCS = 'see "An installation in a home folder" in docs/service.md'


@click.command(
    cls=Command,
    help=help_with(
        "Write the systemd units strandline-node@ and strandline-gateway@. An instance is named after its settings "
        "file: strandline-node@metrics reads /etc/strandline/metrics.toml. Nothing is enabled or started.",
        "strandline install-units --dry-run",
        "sudo strandline install-units",
        "strandline install-units --root build/package --user metrics",
    ),
    epilog=exit_codes((ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE)),
)
@click.option("--dry-run", is_flag=True, help="Show the units, but write nothing.")
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/"),
    help="Write below this folder, e.g. to build a package. [default: /]",
)
@click.option("--user", metavar="NAME", default="strandline", help="The user to run as. [default: strandline]")
@click.option("--yes", is_flag=True, help="Replace existing units that differ.")
@pass_context
def command(context: Context, *, dry_run: bool, root: Path, user: str, yes: bool) -> ExitCode:
    """Install the units."""
    program, installed = Path(sys.executable).with_name("strandline"), Installation.load()
    # The interpreter of a virtual environment is a link; the service must be able to read its target, too.
    reads = (Path(sys.executable).resolve(), installed.java_home, installed.spark_jars)
    target = UnitTarget(program, user, reads)
    files = found_files(units(target), root.absolute())
    if not dry_run:
        write_files(files, replace=yes)
    warnings = [
        f"only its owner may enter {folder}: allow user {user} to read what Strandline needs in it, or bind-mount only "
        f"that into the service's /root and /home: {_SEE_DOCS}"
        for folder in private_folders((program, *reads))
    ]
    warnings += [
        f"a service has its own temporary folders and can't see {path}: install elsewhere, or {_SEE_DOCS}"
        for path in hidden_by_private_tmp((program, *reads))
    ]
    context.output.result(UnitsReport(files, not dry_run, tuple(_next_steps(user, root)), tuple(warnings)))
    return ExitCode.OK


def _next_steps(user: str, root: Path) -> Iterator[str]:
    if not _exists(user):
        yield f"useradd --system --no-create-home --home-dir /var/lib/strandline --shell /usr/sbin/nologin {user}"
    yield f"write /etc/strandline/NAME.toml, readable for {user}; files with secrets belong to {user}, with mode 0400"
    if root == Path("/"):
        yield "systemctl daemon-reload"
    yield "systemctl enable --now strandline-gateway@NAME strandline-node@NAME"
    yield "systemctl status strandline-node@NAME shows the progress of the start"


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True

"""The context of a command: settings, output and clock."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from strandline.clock import Clock
from strandline.node.masking import SecretMask
from strandline.node.output import Output, OutputFormat, make_output

if TYPE_CHECKING:
    from strandline.node.settings import LoadedSettings, Settings


class Context:
    """One call of the `strandline` command. The shared options set `config` and `output_format` while the command
    line is parsed. They don't change afterwards.
    """

    def __init__(self, environ: Mapping[str, str], stdout: TextIO, stderr: TextIO, clock: Clock) -> None:
        self.environ = environ
        self.clock = clock
        self.config: Path | None = None
        self.output_format: OutputFormat = "text"
        self.layout: str | None = None
        """The value of `--output`; None without it. Some commands have text formats besides "text"."""
        self.mask = SecretMask()
        self._stdout = stdout
        self._stderr = stderr

    @property
    def output(self) -> Output:
        """The output for results, errors and progress, in the format of `--output`."""
        return make_output(self.output_format, self._stdout, self._stderr, self.clock, self.mask)

    def settings(self) -> "Settings":
        """The settings. The first call loads them, masks their secrets in all output, and configures logging. Raises
        `SettingsError` if they are invalid.
        """
        return self.loaded.settings

    @cached_property
    def loaded(self) -> "LoadedSettings":
        """The settings together with where each one comes from; loaded by the first use, like `settings`."""
        # Imported here because importing pydantic takes longer than everything that `--help` needs.
        from strandline.node.logs import configure_logging  # noqa: PLC0415
        from strandline.node.settings import load_with_origins  # noqa: PLC0415

        loaded = load_with_origins(self.config, self.environ)
        self.mask.add(loaded.settings.secrets())
        configure_logging(loaded.settings.log.level, loaded.settings.log.format, self._stderr, self.mask)
        return loaded


pass_context = click.make_pass_decorator(Context)

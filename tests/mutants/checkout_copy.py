"""A copy of the checkout to which faults are applied and in which tests run.

The copy uses the checkout's virtual environment, in which the checkout itself is installed as an editable package by a
path file. `PYTHONPATH` has priority over path files, so the copy's packages are imported; `import_check` verifies this.
The compiled kernels are copied, too: numba identifies sources by a digest of their contents.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutants.catalogue import Mutant, mutated

# A test that hangs because of a fault fails after this time. No named test takes as long.
TIMEOUT_S = 120
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "*.egg-info", ".hypothesis", ".*_cache", ".import_linter_cache"
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    output: str


@dataclass(frozen=True, slots=True)
class CheckoutCopy:
    """A copy in the folder `root`. Not thread-safe."""

    root: Path

    @classmethod
    def make(cls, checkout: Path, root: Path) -> "CheckoutCopy":
        """Copy a checkout, or a copy of one. Packages are symbolic links within it and remain links."""
        shutil.copytree(checkout, root, symlinks=True, ignore=_NOT_COPIED)
        return cls(root)

    @contextmanager
    def applied(self, mutant: Mutant) -> Iterator[None]:
        """Apply a fault to the copy while the context is open. Raises `InvalidMutant`."""
        path = self.root / mutant.file
        source, stat = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutated(mutant, source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            # Restore the times, so that Python's compiled file is valid again.
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def test(self, tests: Sequence[str]) -> CommandResult:
        """Run tests up to the first failure."""
        options = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "mutants.import_check"]
        return self.run([sys.executable, "-m", "pytest", *options, f"--timeout={TIMEOUT_S}", *tests])

    def run(self, command: Sequence[str]) -> CommandResult:
        """Run a command in the copy with the copy's packages."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(self.root / "tests")]),
            # Compiled files of a fault must not remain for the next one.
            "PYTHONDONTWRITEBYTECODE": "1",
            # The same examples each time.
            "CI": "true",
            "STRANDLINE_MUTANTS_ROOT": str(self.root),
        }
        environment.pop("PYTEST_ADDOPTS", None)
        done = subprocess.run(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        return CommandResult(done.returncode, done.stdout)

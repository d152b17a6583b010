"""A copy of the checkout in which faults are put and tests are run.

The copy is used with the checkout's virtual environment. That has the checkout itself installed as an editable package,
by a path file; `PYTHONPATH` comes before those, so that the copy's packages are imported. `own_code` checks that they
were. The compiled kernels are copied as well: numba knows its sources by a digest of their contents.
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

# A test that hangs because of a fault ends after so many seconds, and has failed. No test that is named takes as long.
TIMEOUT_S = 120
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "*.egg-info", ".hypothesis", ".*_cache", ".import_linter_cache"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run: its exit code, and what it wrote."""

    code: int
    output: str


@dataclass(frozen=True, slots=True)
class CheckoutCopy:
    """A copy that lies in `root`. One thread uses it."""

    root: Path

    @classmethod
    def make(cls, checkout: Path, root: Path) -> "CheckoutCopy":
        """Copy a checkout, or a copy of one. Packages are links within it, and stay so."""
        shutil.copytree(checkout, root, symlinks=True, ignore=_NOT_COPIED)
        return cls(root)

    @contextmanager
    def having(self, mutant: Mutant) -> Iterator[None]:
        """Have a fault in the copy meanwhile. Raises `BadMutant`."""
        path = self.root / mutant.file
        source, stat = path.read_text(encoding="utf-8"), path.stat()
        path.write_text(mutated(mutant, source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            # As before: what Python has compiled of it counts again.
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def test(self, tests: Sequence[str]) -> Ran:
        """Run tests up to the first one that fails."""
        options = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "mutants.own_code"]
        return self.run([sys.executable, "-m", "pytest", *options, f"--timeout={TIMEOUT_S}", *tests])

    def run(self, command: Sequence[str]) -> Ran:
        """Run a command in the copy, and with its packages."""
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(self.root / "tests")]),
            # Of a fault nothing is left behind for the next one.
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
        return Ran(done.returncode, done.stdout)

"""A pytest plugin for runs in a copy. It checks that the tests have imported the copy's code, not the checkout's."""

import os
import sys
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Invalidate the run (exit code 3) if a module was imported from elsewhere."""
    root = Path(os.environ["STRANDLINE_MUTANTS_ROOT"]).resolve()
    ours = [(name, module) for name, module in list(sys.modules.items()) if name.split(".")[0] == "strandline"]
    files = [(name, Path(file).resolve()) for name, module in ours if (file := getattr(module, "__file__", None))]
    foreign = [f"{name} from {file}" for name, file in files if not file.is_relative_to(root)]
    if foreign or not files:
        print("modules from outside of the copy:", *(foreign or ["strandline was not imported"]), sep="\n  ")  # noqa: T201
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

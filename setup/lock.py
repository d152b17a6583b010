"""`make lock`: writes the Python lock files from setup.cfg and the builder's two lists of pins."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from strandline.errors import StrandlineError
from strandline.index.pylucene.build import jcc_environment
from strandline.setup.build_context import create_build_context
from strandline.setup.python_env import UV_CACHE, provide_builder


def write_locks(checkout: Path, environ: Mapping[str, str]) -> None:
    """Resolve each list of pins to exact versions and hashes."""
    context = create_build_context(4, environ)
    pins = checkout / "conf" / "python"
    with context.progress.step("Build tools"):
        builder = provide_builder(context, pins / "builder.lock", pins / "jcc.lock")
    # JCC's setup.py needs the JDK even to report its dependencies.
    env = {
        **context.environ,
        **jcc_environment(context.java_home),
        "UV_CACHE_DIR": str(context.cache.root / UV_CACHE),
    }
    resolve: list[str | Path] = [
        builder.parent / "uv",
        "pip",
        "compile",
        "--python",
        sys.executable,
        "--generate-hashes",
        "--no-annotate",
    ]
    resolve += ["--custom-compile-command", "make lock", "--upgrade"]
    for source, lock, extra in (
        (pins / "builder.in", pins / "builder.lock", ()),
        (pins / "jcc.in", pins / "jcc.lock", ()),
        (checkout / "setup.cfg", pins / "requirements.lock", ("--extra", "test")),
    ):
        with context.progress.step(lock.name):
            context.progress.working("resolving")
            context.runner("lock").run([*resolve, *extra, source, "--output-file", lock], env=env)


if __name__ == "__main__":
    try:
        write_locks(Path(__file__).resolve().parent.parent, os.environ)
    except StrandlineError as error:
        sys.exit(f"error: {error}")

"""`python3 -m strandline.setup`: all of set-up except the Debian packages, which `debian.sh` installs before."""

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from strandline.errors import StrandlineError
from strandline.setup.build_context import create_build_context
from strandline.setup.class_archives import provide_class_archives
from strandline.setup.installation import Installation
from strandline.setup.jars import provide_jars
from strandline.setup.kernels import compile_kernels, keep_kernels, restore_kernels
from strandline.setup.python_env import provide_builder, provide_environment, provide_pylucene, provide_wheelhouse

STEPS = 10
KEEP_KERNELS = "--keep-kernels"


def set_up(checkout: Path, environ: Mapping[str, str]) -> None:
    """Bring the checkout's `.venv` up to date, and build what the cache does not have."""
    context = create_build_context(STEPS, environ)
    progress = context.progress
    conf = checkout / "conf"

    jars: dict[str, Path] = {}
    for name, title in (
        ("lucene", "Lucene's jars"),
        ("kafka", "Kafka's jars"),
        ("cassandra", "Cassandra's jars"),
        ("spark", "Spark's Kafka source"),
    ):
        with progress.step(title):
            jars[name] = provide_jars(context, name, conf / "maven" / name / "pom.xml")
    with progress.step("Build tools"):
        builder = provide_builder(context, conf / "python" / "builder.lock", conf / "python" / "jcc.lock")
    with progress.step("PyLucene with our extension"):
        pylucene = provide_pylucene(context, builder, jars["lucene"])
    with progress.step("Python packages"):
        wheelhouse = provide_wheelhouse(context, builder, conf / "python" / "requirements.lock")
    with progress.step("Virtual environment"):
        installation = Installation(context.java_home, jars["kafka"], jars["cassandra"], jars["spark"])
        provide_environment(context, builder, checkout, (wheelhouse, pylucene), installation)
    with progress.step("Compiled kernels"):
        if not restore_kernels(context, checkout):
            compile_kernels(context, checkout)
    with progress.step("Archives of Java classes"):
        provide_class_archives(context, checkout, jars["kafka"])
    for dropped in context.cache.drop_unused():
        progress.notice(f"dropped {dropped} from the cache: unused for a long time")


def store_compiled_kernels(checkout: Path, environ: Mapping[str, str]) -> None:
    """Put the checkout's compiled kernels into the cache. `make test` calls this when all tests have passed."""
    context = create_build_context(1, environ)
    with context.progress.step("Compiled kernels"):
        keep_kernels(context, checkout)


def main() -> int:
    """Set up the checkout that contains this file."""
    if sys.version_info[:2] != (3, 11):
        found = ".".join(map(str, sys.version_info[:2]))
        print(f"error: Strandline needs Python 3.11, Debian 12's; {sys.executable} is {found}.", file=sys.stderr)
        print("Choose another interpreter with `make PYTHON=/path/to/python3.11 …`", file=sys.stderr)
        return 2
    checkout = Path(__file__).resolve().parent.parent
    began = time.monotonic()
    try:
        if sys.argv[1:] == [KEEP_KERNELS]:
            store_compiled_kernels(checkout, os.environ)
            return 0
        set_up(checkout, os.environ)
    except StrandlineError as error:
        print(f"\nerror: set-up failed: {error.message}", file=sys.stderr)
        if error.remedy:
            print(error.remedy, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("\nset-up was interrupted; the finished steps are kept", file=sys.stderr)
        return 130
    print(f"  Set-up is complete after {time.monotonic() - began:.1f} s.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

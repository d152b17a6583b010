"""Archives of the classes of Kafka and of Spark, for JVMs that start in half the processor time.

The JDK checks that an archive's class path is that of the JVM, by the jars' paths, sizes and times: an entry of the
cache is one for these jars at this place. A checkout's `.venv` links to it.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from strandline.class_archives import FOLDER, KAFKA, SPARK
from strandline.setup.build_context import BuildContext
from strandline.setup.cache import Recipe
from strandline.setup.progress import Runner, StepFailed

ARCHIVING = "strandline.node.class_archiving"
"""By name: set-up imports nothing that has to be installed."""


def provide_class_archives(context: BuildContext, checkout: Path, kafka_jars: Path) -> None:
    """Put the archives into the checkout's `.venv`. Without them all works too, only slower: a failure is told, and
    nothing more.
    """
    venv = checkout / ".venv"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    spark_jars = venv / "lib" / version / "site-packages" / "pyspark" / "jars"
    for name, jars in ((KAFKA, kafka_jars), (SPARK, spark_jars)):
        place = venv / FOLDER / f"{name}.jsa"
        # First of all: a JVM can't record its classes while it uses an archive.
        place.unlink(missing_ok=True)
        try:
            entry = _entry(context, venv, name, sorted(jars.glob("*.jar")))
        except StepFailed as error:
            context.progress.notice(f"no archive of {name}'s classes, so it starts more slowly: {error.message}")
            continue
        place.parent.mkdir(exist_ok=True)
        _link(entry / place.name, place)


def _entry(context: BuildContext, venv: Path, name: str, jars: Sequence[Path]) -> Path:
    def write(folder: Path, runner: Runner) -> None:
        command = [str(venv / "bin" / "python"), "-m", ARCHIVING, name, str(folder / f"{name}.jsa")]
        runner.run(command, env=context.environ)

    found = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    recipe = Recipe(f"classes-{name}", values=(context.java_identity(), *found))
    return context.entry(recipe, f"archiving the classes of {name.capitalize()}", write)


def _link(source: Path, place: Path) -> None:
    """By a hard link where that is possible: a service may read the environment, and need not see the cache."""
    try:
        os.link(source, place)
    except OSError:
        shutil.copyfile(source, place)

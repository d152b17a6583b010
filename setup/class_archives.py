"""Writes class data sharing archives for Kafka and Spark, which halve the CPU time of a JVM's start.

The JDK compares the class path of an archive with that of the JVM, by the paths, sizes and times of the jars. So a
cache entry is valid for these jars at these paths. A checkout's `.venv` has a link to it.
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
"""A module of the program, which runs in `.venv`: set-up must not import installed packages."""


def provide_class_archives(context: BuildContext, checkout: Path, kafka_jars: Path) -> None:
    """Put the archives into the checkout's `.venv`. They are optional, so a failure only prints a notice."""
    venv = checkout / ".venv"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    spark_jars = venv / "lib" / version / "site-packages" / "pyspark" / "jars"
    for name, jars in ((KAFKA, kafka_jars), (SPARK, spark_jars)):
        target = venv / FOLDER / f"{name}.jsa"
        # A JVM that uses an archive can't record its classes.
        target.unlink(missing_ok=True)
        try:
            entry = _entry(context, venv, name, sorted(jars.glob("*.jar")))
        except StepFailed as error:
            context.progress.notice(f"no archive of {name}'s classes, so it starts more slowly: {error.message}")
            continue
        target.parent.mkdir(exist_ok=True)
        _link(entry / target.name, target)


def _entry(context: BuildContext, venv: Path, name: str, jars: Sequence[Path]) -> Path:
    def write(folder: Path, runner: Runner) -> None:
        command = [str(venv / "bin" / "python"), "-m", ARCHIVING, name, str(folder / f"{name}.jsa")]
        runner.run(command, env=context.environ)

    found = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in jars]
    recipe = Recipe(f"classes-{name}", values=(context.java_identity(), *found))
    return context.entry(recipe, f"archiving the classes of {name.capitalize()}", write)


def _link(source: Path, target: Path) -> None:
    """Create a hard link, or a copy if that is not possible. A service can read `.venv`, but perhaps not the cache."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)

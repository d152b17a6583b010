"""Resolves the jars of each server with Maven, from the pom that pins them."""

from pathlib import Path

from strandline.setup.build_context import BuildContext
from strandline.setup.cache import Recipe
from strandline.setup.progress import Runner

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def provide_jars(context: BuildContext, name: str, pom: Path) -> Path:
    """A folder with exactly the runtime dependencies of the pom."""

    def resolve(folder: Path, runner: Runner) -> None:
        # All poms share one local repository, which is not the user's. Maven does not support concurrent writers.
        with context.cache.lock("maven-repository"):
            runner.run(
                [
                    "mvn",
                    "--batch-mode",
                    "--strict-checksums",
                    f"--file={pom}",
                    f"-Dmaven.repo.local={context.cache.root / 'maven-repository'}",
                    "-DincludeScope=runtime",
                    f"-DoutputDirectory={folder}",
                    PLUGIN,
                ],
                env={**context.environ, "JAVA_HOME": str(context.java_home)},
            )

    return context.entry(Recipe(f"jars-{name}", values=(PLUGIN,), files=(pom,)), "resolving with Maven", resolve)

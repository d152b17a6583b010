"""What every step of set-up uses: the cache, the progress display, the JDK and the environment variables."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.setup import jdk
from strandline.setup.cache import Cache, Recipe, default_root
from strandline.setup.progress import Progress, Runner

# Variables that would make builds depend on the user's environment.
REMOVED_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CLASSPATH", "MAVEN_OPTS", "JAVA_TOOL_OPTIONS")


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The dependencies of a step, which are the same for all steps."""

    cache: Cache
    progress: Progress
    java_home: Path
    environ: Mapping[str, str]

    def entry(self, recipe: Recipe, doing: str, build: Callable[[Path, Runner], None]) -> Path:
        """The folder of a cache entry. If it has to be built, the progress shows `doing`."""

        def announce_and_build(folder: Path) -> None:
            self.progress.working(doing)
            build(folder, self.runner(recipe.name))

        return self.cache.entry(recipe, announce_and_build)[0]

    def runner(self, name: str) -> Runner:
        """A runner whose commands log to a file of this name."""
        return Runner(self.cache.root / "logs" / f"{name}.log", self.progress.tick)

    def java_identity(self) -> str:
        """What compiled code depends on: the JDK's version, and its path, which the linker stores in libraries."""
        return f"{jdk.version_of(self.java_home)} {os.path.realpath(self.java_home)}"


def create_build_context(steps: int, environ: Mapping[str, str]) -> BuildContext:
    """The context for a run of set-up with this number of steps."""
    progress = Progress(steps)
    root = default_root(environ)
    root.mkdir(parents=True, exist_ok=True)
    clean = {name: value for name, value in environ.items() if name not in REMOVED_VARIABLES}
    return BuildContext(Cache(root, progress.notice), progress, jdk.find_jdk(environ), clean)

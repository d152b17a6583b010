"""What every step of set-up works with: the cache, the progress that is shown, the JDK and the environment."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.setup import jdk
from strandline.setup.cache import Cache, Recipe, default_root
from strandline.setup.progress import Progress, Runner

# Variables that would make builds depend on whoever runs them.
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CLASSPATH", "MAVEN_OPTS", "JAVA_TOOL_OPTIONS")


@dataclass(frozen=True, slots=True)
class BuildContext:
    """The surroundings of a step; the same for all of them."""

    cache: Cache
    progress: Progress
    java_home: Path
    environ: Mapping[str, str]

    def entry(self, recipe: Recipe, doing: str, build: Callable[[Path, Runner], None]) -> Path:
        """A whole cache entry. If it has to be built, the progress says what is being done meanwhile."""

        def announce_and_build(folder: Path) -> None:
            self.progress.working(doing)
            build(folder, self.runner(recipe.name))

        return self.cache.entry(recipe, announce_and_build)[0]

    def runner(self, name: str) -> Runner:
        """Runs commands that log under this name."""
        return Runner(self.cache.root / "logs" / f"{name}.log", self.progress.tick)

    def java_identity(self) -> str:
        """What of the JDK a compiled thing depends on: its version, and its path, which is linked in."""
        return f"{jdk.version_of(self.java_home)} {os.path.realpath(self.java_home)}"


def create_build_context(steps: int, environ: Mapping[str, str]) -> BuildContext:
    """The context of this machine, for so many steps."""
    progress = Progress(steps)
    root = default_root(environ)
    root.mkdir(parents=True, exist_ok=True)
    clean = {name: value for name, value in environ.items() if name not in FOREIGN}
    return BuildContext(Cache(root, progress.notice), progress, jdk.find_jdk(environ), clean)

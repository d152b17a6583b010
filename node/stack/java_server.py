"""The base class of both servers, which are Java programs."""

from pathlib import Path
from typing import ClassVar

from strandline.clock import Clock
from strandline.node.stack import java
from strandline.node.stack.errors import JarsMissing
from strandline.node.stack.options import StackOptions
from strandline.node.stack.server import Server
from strandline.node.stack.state import StateFolder


class JavaServer(Server):
    """A server that consists of a folder of jars, and runs in one JVM."""

    main_jar: ClassVar[str]
    """The name, without the version, of a jar that the folder must contain. Its version is the server's."""

    def __init__(
        self, folder: StateFolder, port: int, options: StackOptions, *, program: Path, jars: Path, clock: Clock
    ) -> None:
        super().__init__(folder, port, clock)
        self.options = options
        self.conf = folder.conf(self.name)
        self.class_path = sorted(jars.glob("*.jar"))
        self._program = program
        self._arguments_file = self.conf / "java.args"
        self._version = self._find_version(jars)

    @property
    def version(self) -> str:
        return self._version

    def environment(self) -> dict[str, str]:
        return java.environment()

    def java(self, *arguments: str) -> list[str]:
        """A command that runs a main class of the server. The first argument is the class."""
        return [str(self._program), f"@{self._arguments_file}", *arguments]

    def arguments_file(self, heap: str, *arguments: str) -> dict[Path, str]:
        """The argument file of the JVM, with the options of both servers and `arguments`."""
        common = java.jvm_arguments(
            heap,
            temporary=self.folder.temporary(self.name),
            crash_log=self.folder.output(f"{self.name}-crash"),
            optimise=self.options.optimise,
        )
        class_path = ":".join(map(str, self.class_path))
        return {self._arguments_file: java.argument_file([*common, *arguments, "-cp", class_path])}

    def _find_version(self, jars: Path) -> str:
        for jar in self.class_path:
            name, _, version = jar.stem.rpartition("-")
            if name == self.main_jar:
                return version
        raise JarsMissing(f"there is no {self.title} ({self.main_jar}) in {jars}", remedy="Run `make setup`")

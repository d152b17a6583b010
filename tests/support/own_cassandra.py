"""A Cassandra for one test, with the tools of operators. It may lose all of its data."""

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from strandline.clock import Clock
from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.cassandra import Cassandra
from strandline.node.stack.java import checked_java
from strandline.node.stack.ports import Ports, free_ports
from strandline.node.stack.state import StateFolder
from strandline.setup.installation import Installation

CQLSH = """
import re
import sys
from pathlib import Path
from cassandra.cluster import Cluster

options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
text = options["-e"] if "-e" in options else re.sub("--.*", "", Path(options["-f"]).read_text(encoding="utf-8"))
with Cluster(["127.0.0.1"], port={port}, protocol_version=5) as cluster:
    session = cluster.connect(options.get("-k"))
    for statement in filter(str.strip, text.split(";")):
        session.execute(statement, timeout=60)
"""


class CassandraWithTools(Cassandra):
    """A Cassandra that supports `nodetool`, which uses its file of JVM arguments."""

    jmx_port = 0

    def _jvm_arguments(self) -> list[str]:
        # nodetool writes a history to the user's home.
        home = self.folder.temporary(self.name)
        return [*super()._jvm_arguments(), f"-Dcassandra.jmx.local.port={self.jmx_port}", f"-Duser.home={home}"]


@dataclass(frozen=True)
class Servers:
    """The addresses of a Kafka and a Cassandra that need not belong to one stack."""

    kafka_bootstrap: str
    cassandra_host: str
    cassandra_port: int


class OwnCassandra:
    """A running Cassandra, unless a test has stopped it. `tools` is a folder with `nodetool` and `cqlsh` for it; the
    latter supports `-e`, `-k` and `-f`.
    """

    def __init__(self, options: StackOptions, tools: Path) -> None:
        self._options, self.tools = options, tools
        (self._jmx_port,) = free_ports(1)
        self.stack = self._started()
        self._write_tools()

    @property
    def data(self) -> Path:
        """The folder of its tables."""
        return self.stack.folder.data("cassandra") / "data"

    def lose_everything(self) -> None:
        """Stop it, remove all its data, and start it empty at the same address."""
        ports = self.stack.ports
        self.close()
        self.stack = self._started()
        assert self.stack.ports == ports

    def close(self) -> None:
        self.stack.stop()
        shutil.rmtree(self.stack.folder.data("cassandra"))

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of a shell with the tools."""
        return {**environ, "PATH": f"{self.tools}:{environ['PATH']}"}

    def _started(self) -> Stack:
        return Stack.start(self._options, build=self._build)

    def _build(
        self, folder: StateFolder, ports: Ports, options: StackOptions, clock: Clock
    ) -> tuple[CassandraWithTools]:
        installed = Installation.load()
        java = checked_java(options.java_home or installed.java_home)
        server = CassandraWithTools(folder, ports, options, program=java, jars=installed.cassandra_jars, clock=clock)
        server.jmx_port = self._jmx_port
        self._nodetool = [*server.java("org.apache.cassandra.tools.NodeTool"), "-p", str(self._jmx_port)]
        return (server,)

    def _write_tools(self) -> None:
        self.tools.mkdir()
        script = self.tools / "cqlsh.py"
        script.write_text(CQLSH.replace("{port}", str(self.stack.cassandra_port)), encoding="utf-8")
        for name, command in (("nodetool", self._nodetool), ("cqlsh", [sys.executable, str(script)])):
            tool = self.tools / name
            tool.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
            tool.chmod(0o755)

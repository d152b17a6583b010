"""The Java of the servers: checking its version, its environment variables and JVM options."""

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from strandline.node.stack.errors import WrongJava

REQUIRED = 17
_REMEDY = "Install a JDK 17 (Debian: openjdk-17-jdk-headless) and set stack.java_home to its folder"
_VERSION = re.compile(r'^\S+ version "(?P<version>[^"]+)"', re.MULTILINE)
_INHERITED = ("PATH", "HOME", "TZ", "LD_LIBRARY_PATH")


def checked_java(java_home: Path) -> Path:
    """The `java` program of this JDK. Raises `WrongJava` if it is not the version that both servers require."""
    java = java_home / "bin" / "java"
    if not os.access(java, os.X_OK):
        raise WrongJava(f"there is no Java at {java}", remedy=_REMEDY)
    try:
        shown = subprocess.run(
            [java, "-version"], env=environment(), capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise WrongJava(f"{java} can't be run: {error}", remedy=_REMEDY) from error
    major = major_version(shown.stderr + shown.stdout)
    if major != REQUIRED:
        found = f"Java {major}" if major else "Java of an unknown version"
        raise WrongJava(f"{java} is {found}; Cassandra and Kafka require Java {REQUIRED}", remedy=_REMEDY)
    return java


def major_version(shown: str) -> int | None:
    """The feature release in the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_392"."""
    found = _VERSION.search(shown)
    numbers = re.findall(r"\d+", found["version"]) if found else []
    if not numbers:
        return None
    return int(numbers[1]) if numbers[0] == "1" and len(numbers) > 1 else int(numbers[0])


def environment() -> dict[str, str]:
    """The servers' environment variables: only a few, so that others such as JAVA_TOOL_OPTIONS have no effect, and a
    UTF-8 locale, in which they can read any path.
    """
    return {"LC_ALL": "C.UTF-8", **{name: os.environ[name] for name in _INHERITED if name in os.environ}}


def jvm_arguments(heap: str, *, temporary: Path, crash_log: Path, optimise: bool) -> list[str]:
    """The options of both JVMs: little memory, a quick start, and an exit when the heap is exhausted."""
    return [
        f"-Xmx{heap}",
        "-XX:+UseSerialGC",
        "-Xshare:auto",
        # C1 only: this halves the CPU time of a start, and costs some throughput later.
        *([] if optimise else ["-XX:TieredStopAtLevel=1"]),
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:-UsePerfData",
        f"-XX:ErrorFile={crash_log}",
        f"-Djava.io.tmpdir={temporary}",
        "-Djava.awt.headless=true",
        "-Djava.net.preferIPv4Stack=true",
        "-Dfile.encoding=UTF-8",
    ]


def argument_file(arguments: Sequence[str]) -> str:
    """The text of a file for `java @file`, which keeps a class path of a hundred jars out of the process list."""
    return "".join('"' + argument.replace("\\", "\\\\").replace('"', '\\"') + '"\n' for argument in arguments)

"""Finds a JDK 17 with a compiler and a libjvm to link with."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from strandline.errors import Fatal

WANTED = 17
DEBIAN = Path("/usr/lib/jvm")


class NoJdk(Fatal):
    """No JDK 17 on this machine."""


def find_jdk(environ: Mapping[str, str], installed: Path = DEBIAN) -> Path:
    """The JDK to build and run with: `JAVA_HOME` if that is a JDK 17, or else one of Debian's."""
    tried: list[str] = []
    for home in _candidates(environ, installed):
        fault = find_fault(home)
        if fault is None:
            return home
        tried.append(f"{home}: {fault}")
    seen = "; ".join(tried) or f"nothing in {installed}"
    raise NoJdk(
        f"no JDK {WANTED} was found ({seen})",
        remedy="Install openjdk-17-jdk-headless, or set JAVA_HOME to a JDK 17",
    )


def find_fault(home: Path) -> str | None:
    """Why this folder can't be used as the JDK, or None."""
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return "it has no readable `release` file"
    version = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    if version is None or int(version[1]) != WANTED:
        return f"it is Java {version[1] if version else 'of unknown version'}, not {WANTED}"
    for needed in ("bin/java", "bin/javac", "lib/server/libjvm.so"):
        if not (home / needed).exists():
            return f"{needed} is missing: a JRE, not a JDK"
    return None


def version_of(home: Path) -> str:
    """The full version, from the JDK's release file."""
    match = re.search(r'^JAVA_VERSION="([^"]+)"', (home / "release").read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else "unknown"


def _candidates(environ: Mapping[str, str], installed: Path) -> Iterable[Path]:
    if chosen := environ.get("JAVA_HOME"):
        yield Path(chosen)
    # Debian's links to it (java-1.17.0-…) lead to the same folder.
    yield from sorted(installed.glob("java-17-openjdk-*"))

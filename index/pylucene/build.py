"""Builds the `lucene` wheel: Lucene's jars, our extension compiled into a jar, and JCC's wrappers around both.

It runs before anything is installed, under the system's Python. JCC runs in an environment of its own that set-up
makes: it wants setuptools below 80 and `wheel` beside it, and has to be compiled for the same JDK (`jcc_environment`).
The wrappers are not built in JCC's shared mode: one module needs no library to share, and the wheel then stands alone,
without JCC's own at a path that may be gone tomorrow.
"""

import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from strandline.errors import Fatal

LUCENE_VERSION = "9.12.3"
# By the names that Maven gives them. Those that are wrapped or called at run time, all of them inside the wheel.
JARS = (f"lucene-core-{LUCENE_VERSION}.jar", "RoaringBitmap-1.3.0.jar", "re2j-1.8.jar")
EXTENSION_JAR = "strandline-index.jar"

_COUNT_OF_CALLS = "int handlers;"
_HERE = Path(__file__).resolve().parent


class BuildFailed(Fatal):
    """The wheel could not be built."""


class Run(Protocol):
    """Runs a command to its end in a folder, with some environment variables of its own; raises if it fails."""

    def __call__(self, command: Sequence[str], *, cwd: Path, extra: Mapping[str, str]) -> None: ...


def inputs() -> list[Path]:
    """The files of the checkout that decide what the wheel holds, in a fixed order."""
    return [_HERE / "build.py", _HERE / "classes.txt", *_java_sources()]


def jcc_environment(java_home: Path) -> dict[str, str]:
    """The environment variables under which JCC is compiled, so that it and what it wraps find this JDK's libraries."""
    return {
        "JCC_JDK": str(java_home),
        # JCC's own guess is for another layout of the JDK's folders: with it the linker finds no libjvm.
        "JCC_LFLAGS": ":".join(_link_flags(java_home)),
        "NO_SHARED": "1",
        **_compiler_environment(java_home),
    }


def build_wheel(jars: Path, java_home: Path, python: Path, out: Path, run: Run) -> Path:
    """Build the wheel of the `lucene` module for this JDK, try it out, and leave nothing but it in `out`.

    `jars` is the folder with Lucene's jars; `python` is that of an environment with JCC, setuptools below 80 and
    wheel. `run` sees to what the tools print.
    """
    place = _empty_folder(out / "work")
    libraries = [jars.absolute() / name for name in JARS]
    for library in libraries:
        if not library.is_file():
            raise BuildFailed(
                f"there is no {library.name} in {jars}", remedy="Fetch the jars of conf/maven/lucene again"
            )
    _check_jcc(java_home, python, place, run)
    extension = _compile_extension(libraries, java_home, place, run)
    _patch_jcc(python, place, run)
    run(_jcc_command(python, libraries, extension), cwd=place, extra=_compiler_environment(java_home))
    wheel = _only_wheel(place / "dist")
    _try_out(wheel, python, place, run)
    wheel = wheel.replace(out / wheel.name)
    shutil.rmtree(place)
    return wheel


def _link_flags(java_home: Path) -> list[str]:
    library, server = java_home / "lib", java_home / "lib" / "server"
    return [f"-L{library}", "-ljava", f"-L{server}", "-ljvm", f"-Wl,-rpath={library}", f"-Wl,-rpath={server}"]


def _compiler_environment(java_home: Path) -> dict[str, str]:
    return {
        "JAVA_HOME": str(java_home),
        "PATH": os.pathsep.join([str(java_home / "bin"), os.environ.get("PATH", os.defpath)]),
        # Wrappers only pass calls on: there is nothing to optimise, and debug symbols are stripped in the end anyway.
        "CXXFLAGS": "-O1 -g0 -fwrapv -DNDEBUG",
    }


def _check_jcc(java_home: Path, python: Path, place: Path, run: Run) -> None:
    """JCC links its wrappers against the JDK that it was compiled for itself: make sure that it is this one."""
    wanted = _link_flags(java_home)
    program = (
        "import sys, jcc.config\n"
        f"found = jcc.config.LFLAGS[:{len(wanted)}]\n"
        f"sys.exit(None if found == {wanted!r} else f'JCC was compiled for another JDK: it links with {{found}}')"
    )
    run([str(python), "-c", program], cwd=place, extra={})


def _patch_jcc(python: Path, place: Path, run: Run) -> None:
    """Put a copy of JCC where `python -m jcc` finds it first, whose count of calls into Java is right.

    As it comes, the count begins with whatever is in memory, and threads change it without a lock. In a process where
    it reads as none while a call is under way, JCC prints Java's exceptions instead of passing them on, for good.
    """
    copy = place / "jcc"
    program = "import os, shutil, sys, jcc; shutil.copytree(os.path.dirname(jcc.__file__), sys.argv[1])"
    run([str(python), "-c", program, str(copy)], cwd=place, extra={})
    header = copy / "sources" / "JCCEnv.h"
    text = header.read_text(encoding="utf-8")
    if text.count(_COUNT_OF_CALLS) != 1:
        raise BuildFailed(
            f"{header.name} of JCC has no {_COUNT_OF_CALLS!r}, or several",
            remedy="It is another version: see whether it still counts calls like this, and mend that here",
        )
    text = text.replace(_COUNT_OF_CALLS, "std::atomic<int> handlers{0};")
    header.write_text(f"#include <atomic>\n{text}", encoding="utf-8")


def _java_sources() -> list[Path]:
    return sorted((_HERE / "java").rglob("*.java"))


def _compile_extension(libraries: Sequence[Path], java_home: Path, place: Path, run: Run) -> Path:
    classes = _empty_folder(place / "classes")
    command = [
        str(java_home / "bin" / "javac"),
        *("--release", "17", "-encoding", "UTF-8", "-proc:none", "-Xlint:all", "-Werror"),
        *("-classpath", os.pathsep.join(map(str, libraries)), "-d", str(classes)),
        *map(str, _java_sources()),
    ]
    run(command, cwd=place, extra={})
    jar = place / EXTENSION_JAR
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(classes.rglob("*.class")):
            # A ZipInfo made by hand has a fixed date, so that the same sources give the same jar.
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(classes))), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return jar


def _jcc_command(python: Path, libraries: Sequence[Path], extension: Path) -> list[str]:
    command = [str(python), "-m", "jcc", "--use_full_names"]
    for library in libraries:
        command += ["--include", str(library)]
    command += ["--jar", str(extension), *_wrapped_classes()]
    command += ["--python", "lucene", "--version", LUCENE_VERSION, "--files", "2", "--build", "--wheel"]
    return command


def _wrapped_classes() -> list[str]:
    lines = (_HERE / "classes.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _try_out(wheel: Path, python: Path, place: Path, run: Run) -> None:
    """Start a JVM from the wheel and reach our extension in it: what is kept must work."""
    unpacked = _empty_folder(place / "unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    program = (
        "import lucene; lucene.initVM(vmargs=['-Xrs']); from org.strandline.index import Fields; print(Fields.PART_ID)"
    )
    run([str(python), "-c", program], cwd=unpacked, extra={"PYTHONPATH": str(unpacked)})


def _empty_folder(folder: Path) -> Path:
    folder = folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _only_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildFailed(f"JCC left {len(wheels)} wheels in {folder}, not one")
    return wheels[0]

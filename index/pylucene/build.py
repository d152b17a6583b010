"""Builds the `lucene` wheel: Lucene's jars, our extension compiled into a jar, and JCC's wrappers around both.

It runs before anything is installed, with the system's Python. JCC runs in a separate environment that set-up creates,
because it needs setuptools below 80 and `wheel`, and must be compiled for the same JDK (`jcc_environment`). The
wrappers are not built in JCC's shared mode: there is only one module, and the wheel does not depend on JCC's own
library at a path that may be deleted.
"""

import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from strandline.errors import Fatal

LUCENE_VERSION = "9.12.3"
# Maven's file names. The classes that are wrapped or used at run time; all are included in the wheel.
JARS = (f"lucene-core-{LUCENE_VERSION}.jar", "RoaringBitmap-1.3.0.jar", "re2j-1.8.jar")
EXTENSION_JAR = "strandline-index.jar"

_COUNT_OF_CALLS = "int handlers;"
_HERE = Path(__file__).resolve().parent


class BuildFailed(Fatal):
    """The wheel could not be built."""


class Run(Protocol):
    """Runs a command in a folder, with additional environment variables; raises if it fails."""

    def __call__(self, command: Sequence[str], *, cwd: Path, extra: Mapping[str, str]) -> None: ...


def inputs() -> list[Path]:
    """Return the files of the checkout that determine the wheel's content, in a fixed order."""
    return [_HERE / "build.py", _HERE / "classes.txt", *_java_sources()]


def jcc_environment(java_home: Path) -> dict[str, str]:
    """Return the environment variables with which JCC is compiled, so that it and the wrappers find this JDK's
    libraries.
    """
    return {
        "JCC_JDK": str(java_home),
        # JCC's default is for another layout of the JDK's folders: with it the linker finds no libjvm.
        "JCC_LFLAGS": ":".join(_link_flags(java_home)),
        "NO_SHARED": "1",
        **_compiler_environment(java_home),
    }


def build_wheel(jars: Path, java_home: Path, python: Path, out: Path, run: Run) -> Path:
    """Build the wheel of the `lucene` module for this JDK, and test it. Nothing else remains in `out`.

    `jars` is the folder with Lucene's jars; `python` is that of an environment with JCC, setuptools below 80 and wheel.
    `run` handles the output of the tools.
    """
    work = _empty_folder(out / "work")
    libraries = [jars.absolute() / name for name in JARS]
    for library in libraries:
        if not library.is_file():
            raise BuildFailed(
                f"there is no {library.name} in {jars}", remedy="Fetch the jars of conf/maven/lucene again"
            )
    _check_jcc(java_home, python, work, run)
    extension = _compile_extension(libraries, java_home, work, run)
    _patch_jcc(python, work, run)
    run(_jcc_command(python, libraries, extension), cwd=work, extra=_compiler_environment(java_home))
    wheel = _only_wheel(work / "dist")
    _try_out(wheel, python, work, run)
    wheel = wheel.replace(out / wheel.name)
    shutil.rmtree(work)
    return wheel


def _link_flags(java_home: Path) -> list[str]:
    library, server = java_home / "lib", java_home / "lib" / "server"
    return [f"-L{library}", "-ljava", f"-L{server}", "-ljvm", f"-Wl,-rpath={library}", f"-Wl,-rpath={server}"]


def _compiler_environment(java_home: Path) -> dict[str, str]:
    return {
        "JAVA_HOME": str(java_home),
        "PATH": os.pathsep.join([str(java_home / "bin"), os.environ.get("PATH", os.defpath)]),
        # Wrappers only pass calls on: there is nothing to optimise, and debug symbols are stripped anyway.
        "CXXFLAGS": "-O1 -g0 -fwrapv -DNDEBUG",
    }


def _check_jcc(java_home: Path, python: Path, work: Path, run: Run) -> None:
    """Check that JCC was compiled for this JDK: it links its wrappers against its own."""
    wanted = _link_flags(java_home)
    program = (
        "import sys, jcc.config\n"
        f"found = jcc.config.LFLAGS[:{len(wanted)}]\n"
        f"sys.exit(None if found == {wanted!r} else f'JCC was compiled for another JDK: it links with {{found}}')"
    )
    run([str(python), "-c", program], cwd=work, extra={})


def _patch_jcc(python: Path, work: Path, run: Run) -> None:
    """Put a patched copy of JCC where `python -m jcc` finds it first, with a correct counter of calls into Java.

    In the original, the counter is not initialised, and threads change it without a lock. If it is 0 while a call is in
    progress, JCC permanently prints Java's exceptions instead of raising them.
    """
    copy = work / "jcc"
    program = "import os, shutil, sys, jcc; shutil.copytree(os.path.dirname(jcc.__file__), sys.argv[1])"
    run([str(python), "-c", program, str(copy)], cwd=work, extra={})
    header = copy / "sources" / "JCCEnv.h"
    text = header.read_text(encoding="utf-8")
    if text.count(_COUNT_OF_CALLS) != 1:
        raise BuildFailed(
            f"{header.name} of JCC has no {_COUNT_OF_CALLS!r}, or several",
            remedy="It is another version: check whether it still counts calls like this, and adapt the patch",
        )
    text = text.replace(_COUNT_OF_CALLS, "std::atomic<int> handlers{0};")
    header.write_text(f"#include <atomic>\n{text}", encoding="utf-8")


def _java_sources() -> list[Path]:
    return sorted((_HERE / "java").rglob("*.java"))


def _compile_extension(libraries: Sequence[Path], java_home: Path, work: Path, run: Run) -> Path:
    classes = _empty_folder(work / "classes")
    command = [
        str(java_home / "bin" / "javac"),
        *("--release", "17", "-encoding", "UTF-8", "-proc:none", "-Xlint:all", "-Werror"),
        *("-classpath", os.pathsep.join(map(str, libraries)), "-d", str(classes)),
        *map(str, _java_sources()),
    ]
    run(command, cwd=work, extra={})
    jar = work / EXTENSION_JAR
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(classes.rglob("*.class")):
            # An explicit ZipInfo has a fixed date, so that the same sources give the same jar.
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


def _try_out(wheel: Path, python: Path, work: Path, run: Run) -> None:
    """Start a JVM from the wheel and use the extension: what is kept must work."""
    unpacked = _empty_folder(work / "unpacked")
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
        raise BuildFailed(f"JCC built {len(wheels)} wheels in {folder}, not one")
    return wheels[0]

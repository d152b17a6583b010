"""Builds the `lucene` wheel: Lucene's jars, our extension compiled into a jar, and JCC's wrappers around both.

It runs before anything is installed, under the system's Python. JCC runs in an environment of its own that set-up
makes: it wants setuptools below 80 and `wheel` beside it, and has to be compiled for the same JDK (`jcc_environment`).
The wrappers are not built in JCC's shared mode: one module needs no library to share, and the wheel then stands alone,
without JCC's own at a path that may be gone tomorrow.
"""

import os
import shutil
import subprocess
import zipfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from strandline.errors import Fatal

LUCENE_VERSION = "9.12.3"
# By the names that Maven gives them. Those that are wrapped or called at run time, all of them inside the wheel.
JARS = (f"lucene-core-{LUCENE_VERSION}.jar", "RoaringBitmap-1.3.0.jar", "re2j-1.8.jar")
EXTENSION_JAR = "strandline-index.jar"

_HERE = Path(__file__).resolve().parent
_LAST_LINES = 15


class BuildFailed(Fatal):
    """The wheel could not be built."""


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


def build_wheel(  # noqa: PLR0917 - five places and a log, each with a type or a name that says which
    jars: Path, java_home: Path, python: Path, out: Path, work: Path, log: TextIO
) -> Path:
    """Build the wheel of the `lucene` module for this JDK, try it out, and leave it in `out`.

    `jars` is the folder with Lucene's jars; `python` is that of an environment with JCC, setuptools below 80 and
    wheel. What is written on the way lies below `work`; everything the tools print goes into `log`.
    """
    place = _empty_folder(work / "lucene")
    libraries = [jars.absolute() / name for name in JARS]
    for library in libraries:
        if not library.is_file():
            raise BuildFailed(
                f"there is no {library.name} in {jars}", remedy="Fetch the jars of conf/maven/lucene again"
            )
    _check_jcc(java_home, python, place, log)
    extension = _compile_extension(libraries, java_home, place, log)
    _run(
        "JCC's wrappers",
        _jcc_command(python, libraries, extension),
        cwd=place,
        extra=_compiler_environment(java_home),
        log=log,
    )
    wheel = _only_wheel(place / "dist")
    _try_out(wheel, python, place, log)
    return _deliver(wheel, out)


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


def _check_jcc(java_home: Path, python: Path, place: Path, log: TextIO) -> None:
    """JCC links its wrappers against the JDK that it was compiled for itself: make sure that it is this one."""
    wanted = _link_flags(java_home)
    program = (
        "import sys, jcc.config\n"
        f"found = jcc.config.LFLAGS[:{len(wanted)}]\n"
        f"sys.exit(None if found == {wanted!r} else f'JCC was compiled for another JDK: it links with {{found}}')"
    )
    _run(f"with JCC for {java_home}", [str(python), "-c", program], cwd=place, extra={}, log=log)


def _java_sources() -> list[Path]:
    return sorted((_HERE / "java").rglob("*.java"))


def _compile_extension(libraries: Sequence[Path], java_home: Path, place: Path, log: TextIO) -> Path:
    classes = _empty_folder(place / "classes")
    command = [
        str(java_home / "bin" / "javac"),
        *("--release", "17", "-encoding", "UTF-8", "-proc:none", "-Xlint:all", "-Werror"),
        *("-classpath", os.pathsep.join(map(str, libraries)), "-d", str(classes)),
        *map(str, _java_sources()),
    ]
    _run("our Java extension", command, cwd=place, extra={}, log=log)
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


def _try_out(wheel: Path, python: Path, place: Path, log: TextIO) -> None:
    """Start a JVM from the wheel and reach our extension in it: what is kept must work."""
    unpacked = _empty_folder(place / "unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)
    program = (
        "import lucene; lucene.initVM(vmargs=['-Xrs']); from org.strandline.index import Fields; print(Fields.PART_ID)"
    )
    _run(
        "a trial of the wheel", [str(python), "-c", program], cwd=unpacked, extra={"PYTHONPATH": str(unpacked)}, log=log
    )


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


def _deliver(wheel: Path, out: Path) -> Path:
    """Put the wheel into `out`, whole or not at all."""
    out.mkdir(parents=True, exist_ok=True)
    partial = out / f"{wheel.name}.partial"
    shutil.copyfile(wheel, partial)
    return partial.replace(out / wheel.name)


def _run(what: str, command: Sequence[str], *, cwd: Path, extra: Mapping[str, str], log: TextIO) -> None:
    """Run a tool to its end, with its output in the log; a failure shows the last of it."""
    print(f"+ {' '.join(command)}", file=log, flush=True)
    last: deque[str] = deque(maxlen=_LAST_LINES)
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **extra},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise BuildFailed(f"building {what} could not start: {error}") from error
    with process:
        for line in process.stdout or ():
            log.write(line)
            last.append(line)
    log.flush()
    if process.returncode != 0:
        shown = "".join(f"  {line}" for line in last).rstrip()
        raise BuildFailed(
            f"building {what} failed with exit code {process.returncode}",
            remedy=f"All of its output is in {getattr(log, 'name', 'the log')}, which ends with:\n{shown}",
        )

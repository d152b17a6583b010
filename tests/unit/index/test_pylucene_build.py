"""Building the wheel: its inputs, and the errors. The other tests show that the wheel works."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from strandline.index.pylucene import build
from strandline.index.vm import start_vm

pytestmark = pytest.mark.unit

SOURCES = Path(build.__file__).resolve().parent


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in build.JARS:
        (folder / name).touch()
    return folder


def test_it_needs_nothing_but_the_standard_library() -> None:
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import strandline.index.pylucene.build as build; "
        "print(len(build.inputs()), sorted({'numpy', 'lucene', 'pyroaring'} & set(sys.modules)))"
    )
    source = SOURCES.parent.parent / "src"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(source)], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{len(build.inputs())} []\n"


def test_inputs_are_the_build_the_list_of_classes_and_every_java_source() -> None:
    found = build.inputs()
    assert {SOURCES / "build.py", SOURCES / "classes.txt"} <= set(found)
    assert {path for path in found if path.suffix == ".java"} == set(SOURCES.rglob("*.java"))
    assert found == build.inputs()


def test_jcc_links_against_the_jdk_that_is_given() -> None:
    flags = build.jcc_environment(Path("/opt/jdk"))["JCC_LFLAGS"].split(":")
    assert {"-Wl,-rpath=/opt/jdk/lib", "-Wl,-rpath=/opt/jdk/lib/server"} <= set(flags)


def run(command: Sequence[str], *, cwd: Path, extra: Mapping[str, str]) -> None:
    subprocess.run(command, cwd=cwd, env={**os.environ, **extra}, check=True, capture_output=True, text=True)


def test_a_failing_compiler_leaves_no_wheel(tmp_path: Path, jars: Path) -> None:
    script(tmp_path / "jdk/bin/javac", "exit 3")
    python = script(tmp_path / "python", "exit 0")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        build.build_wheel(jars, tmp_path / "jdk", python, tmp_path / "out", run)
    assert failed.value.returncode == 3
    assert list((tmp_path / "out").glob("*.whl")) == []


def with_jcc(folder: Path, header: str, flags: Sequence[str]) -> Path:
    """A Python with a JCC that links with these flags, and that stops when JCC is run."""
    package = folder / "site/jcc"
    (package / "sources").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "config.py").write_text(f"LFLAGS = {flags!r}\n")
    (package / "sources/JCCEnv.h").write_text(header)
    script(folder / "jdk/bin/javac", "exit 0")
    return script(
        folder / "python", f'[ "$1" != -m ] || exit 4; PYTHONPATH={folder / "site"} exec {sys.executable} "$@"'
    )


def test_a_jcc_for_another_jdk_is_refused(tmp_path: Path, jars: Path) -> None:
    python = with_jcc(tmp_path, "", ["-L/elsewhere"])
    with pytest.raises(subprocess.CalledProcessError) as failed:
        build.build_wheel(jars, tmp_path / "jdk", python, tmp_path / "out", run)
    assert "compiled for another JDK" in failed.value.stderr


def test_wrappers_are_made_by_a_jcc_that_counts_calls_without_a_race(tmp_path: Path, jars: Path) -> None:
    python = with_jcc(tmp_path, "class JCCEnv {\n    int handlers;\n};\n", build._link_flags(tmp_path / "jdk"))
    with pytest.raises(subprocess.CalledProcessError) as failed:
        build.build_wheel(jars, tmp_path / "jdk", python, tmp_path / "out", run)
    assert failed.value.returncode == 4, "it ran JCC in this folder"
    patched = (tmp_path / "out/work/jcc/sources/JCCEnv.h").read_text()
    assert patched == "#include <atomic>\nclass JCCEnv {\n    std::atomic<int> handlers{0};\n};\n"
    assert "atomic" not in (tmp_path / "site/jcc/sources/JCCEnv.h").read_text(), "the existing one is not changed"


def test_a_jcc_that_counts_in_another_way_is_refused(tmp_path: Path, jars: Path) -> None:
    python = with_jcc(tmp_path, "class JCCEnv {};\n", build._link_flags(tmp_path / "jdk"))
    with pytest.raises(build.BuildFailed, match=r"JCCEnv\.h of JCC has no 'int handlers;'"):
        build.build_wheel(jars, tmp_path / "jdk", python, tmp_path / "out", run)


def test_a_missing_jar_is_named(tmp_path: Path, jars: Path) -> None:
    (jars / "re2j-1.8.jar").unlink()
    with pytest.raises(build.BuildFailed, match=r"there is no re2j-1\.8\.jar"):
        build.build_wheel(jars, tmp_path / "jdk", Path(sys.executable), tmp_path / "out", run)


def test_every_listed_class_is_in_the_wheel() -> None:
    start_vm()
    for line in (SOURCES / "classes.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            package, _, name = line.rpartition(".")
            found = import_module(package)
            for part in name.split("$"):
                found = getattr(found, part)
            assert found.class_.getName() == line

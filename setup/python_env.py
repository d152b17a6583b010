"""The Python part of set-up: the build tools, the wheels, and the virtual environment.

Wheels are downloaded by hash and kept in the cache, so a second checkout needs no network. The environment is in the
checkout. A stamp file in it has the inputs that it was built from, and each package's RECORD lists the files that must
exist.
"""

import csv
import hashlib
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from strandline.index.pylucene import build as pylucene
from strandline.setup.build_context import BuildContext
from strandline.setup.cache import Recipe
from strandline.setup.installation import Installation
from strandline.setup.progress import Command, Runner

STAMP = "strandline-setup.json"
UV_CACHE = "uv"  # In the cache folder. uv manages it.


def python_identity() -> str:
    """Identifies the interpreter that everything is built for."""
    return f"{sys.implementation.cache_tag} {sys.version} {sys.executable}"


def provide_builder(context: BuildContext, tools_lock: Path, jcc_lock: Path) -> Path:
    """The Python of a virtual environment with JCC, uv and the packages that building wheels needs."""

    def make(folder: Path, runner: Runner) -> None:
        runner.run([sys.executable, "-m", "venv", folder], env=context.environ)
        install: Command = [
            folder / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--no-deps",
            "--require-hashes",
            "--no-compile",
        ]
        runner.run([*install, "-r", tools_lock], env=context.environ)
        runner.run(
            [*install, "--no-build-isolation", "--no-binary=:all:", "-r", jcc_lock],
            env={**context.environ, **pylucene.jcc_environment(context.java_home)},
        )

    recipe = Recipe("builder", values=(python_identity(), context.java_identity()), files=(tools_lock, jcc_lock))
    return context.entry(recipe, "compiling JCC", make) / "bin" / "python"


def provide_wheelhouse(context: BuildContext, builder: Path, lock: Path) -> Path:
    """A folder with a wheel of every package in the lock file."""

    def fetch(folder: Path, runner: Runner) -> None:
        wheel: Command = [builder, "-m", "pip", "wheel", "--no-deps", "--require-hashes", "--no-build-isolation"]
        runner.run([*wheel, "--wheel-dir", folder, "-r", lock], env=context.environ)

    recipe = Recipe("wheelhouse", values=(python_identity(),), files=(lock,))
    return context.entry(recipe, "fetching and building", fetch)


def provide_pylucene(context: BuildContext, builder: Path, jars: Path) -> Path:
    """A folder with the PyLucene wheel, including our Java extension."""

    def build(folder: Path, runner: Runner) -> None:
        def run(command: Sequence[str], *, cwd: Path, extra: Mapping[str, str]) -> None:
            runner.run(command, env={**context.environ, **extra}, cwd=cwd)

        pylucene.build_wheel(jars, context.java_home, builder, folder, run)

    recipe = Recipe(
        "pylucene",
        values=(python_identity(), context.java_identity(), jars.name, builder.parent.parent.name),
        files=tuple(pylucene.inputs()),
    )
    return context.entry(recipe, "compiling Lucene's wrapper", build)


def provide_environment(
    context: BuildContext, builder: Path, checkout: Path, wheel_folders: Sequence[Path], installation: Installation
) -> Path:
    """The checkout's `.venv`, with every wheel, the checkout as an editable package, and the installation record."""
    venv = checkout / ".venv"
    stamp = {
        "python": python_identity(),
        "checkout": str(checkout),
        "wheels": [folder.name for folder in wheel_folders],
        "packaging": [_digest(checkout / name) for name in ("setup.cfg", "pyproject.toml")],
    }
    with context.cache.lock("checkout-" + hashlib.sha256(str(checkout).encode()).hexdigest()[:20]):
        fault = find_environment_fault(venv, stamp)
        if fault is not None:
            if venv.exists():
                context.progress.notice(f".venv is built again: {fault}")
            context.progress.working("installing")
            _install(context, builder, checkout, wheel_folders)
            _write_stamp(venv, stamp)
            if find_environment_fault(venv, stamp) is not None:
                # uv links files from its cache, so one of these must be damaged.
                shutil.rmtree(context.cache.root / UV_CACHE)
                _install(context, builder, checkout, wheel_folders)
                _write_stamp(venv, stamp)
        _compile_checkout(context, checkout)
        installation.save(venv)
    return venv


def _install(context: BuildContext, builder: Path, checkout: Path, wheel_folders: Sequence[Path]) -> None:
    venv = checkout / ".venv"
    if venv.exists():
        shutil.rmtree(venv)
    runner = context.runner("environment")
    uv = builder.parent / "uv"
    env = {**context.environ, "UV_CACHE_DIR": str(context.cache.root / UV_CACHE), "UV_PYTHON_DOWNLOADS": "never"}
    wheels = sorted(wheel for folder in wheel_folders for wheel in folder.glob("*.whl"))
    install: Command = [uv, "pip", "install", "--python", venv / "bin" / "python", "--no-index", "--no-deps"]
    runner.run([uv, "venv", "--python", sys.executable, venv], env=env)
    # A service must not write to its installation, so it would compile missing byte code at each start.
    runner.run([*install, "--compile-bytecode", *wheels], env=env)
    runner.run([*install, "--no-build-isolation", "--editable", checkout], env=env)


def _compile_checkout(context: BuildContext, checkout: Path) -> None:
    """Compile our own changed modules. The links to packages are resolved here, since compileall skips links."""
    packages = checkout / "src" / "strandline"
    folders = [packages, *(link.resolve() for link in sorted(packages.iterdir()) if link.is_symlink())]
    compile_all: Command = [checkout / ".venv" / "bin" / "python", "-m", "compileall", "-q", *folders]
    context.runner("bytecode").run(compile_all, env=context.environ)


def _write_stamp(venv: Path, stamp: Mapping[str, object]) -> None:
    (venv / STAMP).write_text(json.dumps(stamp), encoding="utf-8")


def find_environment_fault(venv: Path, stamp: Mapping[str, object]) -> str | None:
    """Why the environment must be built again, or None."""
    try:
        found = json.loads((venv / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "it is not complete"
    if found != stamp:
        changed = [name for name in stamp if found.get(name) != stamp[name]]
        return f"changed since: {', '.join(changed)}"
    for record in venv.glob("lib/python*/site-packages/*.dist-info/RECORD"):
        site = record.parent.parent
        with record.open(newline="", encoding="utf-8") as handle:
            for name, _digest_of_file, size in csv.reader(handle):
                try:
                    actual = (site / name).stat().st_size
                except OSError:
                    return f"{name} is missing"
                if size and actual != int(size):
                    return f"{name} has another size"
    return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

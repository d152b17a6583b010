"""Compiled kernels: kept in the cache folder, so that a second checkout need not compile them.

numba compiles a kernel at its first call and keeps the machine code in the `__pycache__` beside the source, with a
digest of that source. It does not notice when a function changes that the kernel has inlined from another module. So
compiled code counts as valid only for the sources of all kernels together: set-up notes their key, and removes what was
compiled if a source has changed since.

`restore_kernels` puts the compiled kernels of the same sources into a checkout. Where the cache has none,
`compile_kernels` compiles those that a node needs first. `keep_kernels`, after all tests have run, puts all that a
checkout has compiled into the cache.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from strandline.setup.build_context import BuildContext
from strandline.setup.cache import Recipe

NOTE = "strandline-kernels"
COMPILING = "strandline.node.kernel_compiling"
"""By name: set-up imports nothing that has to be installed."""
_COMPILED = ("*.nbi", "*.nbc")


def restore_kernels(context: BuildContext, checkout: Path) -> bool:
    """Remove compiled kernels that may not match the checkout's sources, and copy matching ones from the cache. Whether
    the checkout has compiled kernels then.
    """
    recipe = _recipe(checkout)
    note = checkout / ".venv" / NOTE
    if _is_valid(checkout, note, recipe):
        return any(_compiled(checkout))
    for path in _compiled(checkout):
        path.unlink()
    # Before anything is compiled: a source that changes from here on is newer than the note.
    note.write_text(recipe.key(), encoding="utf-8")
    entry = context.cache.find(recipe)
    if entry is None:
        return False
    context.progress.working("copying from the cache")
    for path in entry.rglob("*"):
        if path.suffix in (".nbi", ".nbc"):
            place = checkout / path.relative_to(entry).parent / "__pycache__" / path.name
            place.parent.mkdir(exist_ok=True)
            # By one rename, so that no process ever loads a part of it.
            partial = place.with_suffix(f".{os.getpid()}")
            shutil.copyfile(path, partial)
            partial.replace(place)
    return True


def compile_kernels(context: BuildContext, checkout: Path) -> None:
    """Compile the kernels that a node calls in its first minutes."""
    context.progress.working("compiling for this processor")
    command = [str(checkout / ".venv" / "bin" / "python"), "-m", COMPILING]
    context.runner("kernels").run(command, env=context.environ)


def keep_kernels(context: BuildContext, checkout: Path) -> None:
    """Put the compiled kernels into the cache, unless it has some for these sources."""
    recipe = _recipe(checkout)
    if not _is_valid(checkout, checkout / ".venv" / NOTE, recipe):
        return

    def copy(folder: Path) -> None:
        context.progress.working("copying into the cache")
        for path in _compiled(checkout):
            # A cache entry's listing leaves `__pycache__` out.
            place = folder / path.parent.parent.relative_to(checkout) / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)

    context.cache.entry(recipe, copy)


def kernel_sources(checkout: Path) -> list[Path]:
    """Every module that numba compiles something of, or may inline something from."""
    packages = checkout / "src" / "strandline"
    roots = [packages / "kernels", *(link.resolve() for link in sorted(packages.iterdir()) if link.is_symlink())]
    return sorted(
        path for root in roots for path in root.rglob("*.py") if "kernels" in path.relative_to(checkout).parts[:-1]
    )


def _recipe(checkout: Path) -> Recipe:
    sources = kernel_sources(checkout)
    names = [str(path.relative_to(checkout)) for path in sources]
    lock = checkout / "conf" / "python" / "requirements.lock"
    return Recipe("kernels", values=(sys.version, _processor(), *names), files=(lock, *sources))


def _processor() -> str:
    """What numba compiles for: it keeps code for each kind of processor apart, and so do we."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


def _is_valid(checkout: Path, note: Path, recipe: Recipe) -> bool:
    """Whether all that is compiled was compiled since the sources are as they are."""
    try:
        if note.read_text(encoding="utf-8") != recipe.key():
            return False
        noted = note.stat().st_mtime_ns
    except FileNotFoundError:
        return False
    return all(path.stat().st_mtime_ns <= noted for path in kernel_sources(checkout))


def _compiled(checkout: Path) -> Iterator[Path]:
    for folder in sorted({path.parent / "__pycache__" for path in kernel_sources(checkout)}):
        for pattern in _COMPILED:
            yield from sorted(folder.glob(pattern))

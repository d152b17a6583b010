"""Keeps compiled kernels in the cache folder, so that another checkout does not need to compile them.

numba compiles a kernel at its first call, and stores the machine code in the `__pycache__` next to the source, with a
digest of that source. It does not detect that a function has changed that the kernel inlines from another module.
Therefore compiled kernels are valid only for the sources of all kernels together: set-up stores the key of these
sources in a file (`NOTE`), and deletes all compiled kernels if a source has changed.

`restore_kernels` copies the compiled kernels of the same sources into a checkout. If the cache has none,
`compile_kernels` compiles those that a node needs first. `keep_kernels` puts all compiled kernels of a checkout into
the cache, after all tests have run.
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
"""A module of the program, which runs in `.venv`: set-up must not import installed packages."""
_COMPILED = ("*.nbi", "*.nbc")


def restore_kernels(context: BuildContext, checkout: Path) -> bool:
    """Delete compiled kernels that may not match the checkout's sources, and copy matching ones from the cache. Returns
    whether the checkout has compiled kernels afterwards.
    """
    recipe = _recipe(checkout)
    note = checkout / ".venv" / NOTE
    if _is_valid(checkout, note, recipe):
        return any(_compiled(checkout))
    for path in _compiled(checkout):
        path.unlink()
    # Written before anything is compiled, so that a source that changes later is newer than the note.
    note.write_text(recipe.key(), encoding="utf-8")
    entry = context.cache.find(recipe)
    if entry is None:
        return False
    context.progress.working("copying from the cache")
    for path in entry.rglob("*"):
        if path.suffix in (".nbi", ".nbc"):
            target = checkout / path.relative_to(entry).parent / "__pycache__" / path.name
            target.parent.mkdir(exist_ok=True)
            # Atomically, so that no process loads an incomplete file.
            partial = target.with_suffix(f".{os.getpid()}")
            shutil.copyfile(path, partial)
            partial.replace(target)
    return True


def compile_kernels(context: BuildContext, checkout: Path) -> None:
    """Compile the kernels that a node calls in its first minutes."""
    context.progress.working("compiling for this processor")
    command = [str(checkout / ".venv" / "bin" / "python"), "-m", COMPILING]
    context.runner("kernels").run(command, env=context.environ)


def keep_kernels(context: BuildContext, checkout: Path) -> None:
    """Put the compiled kernels into the cache, unless it already has an entry for these sources."""
    recipe = _recipe(checkout)
    if not _is_valid(checkout, checkout / ".venv" / NOTE, recipe):
        return

    def copy(folder: Path) -> None:
        context.progress.working("copying into the cache")
        for path in _compiled(checkout):
            # Not into `__pycache__`, which the listing of a cache entry excludes.
            target = folder / path.parent.parent.relative_to(checkout) / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    context.cache.entry(recipe, copy)


def kernel_sources(checkout: Path) -> list[Path]:
    """Every module with functions that numba compiles or inlines."""
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
    """The processor model and flags, which determine the code that numba generates."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


def _is_valid(checkout: Path, note: Path, recipe: Recipe) -> bool:
    """Whether all compiled kernels were compiled from the current sources."""
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

"""The units as `install-units` writes them, in a test's own environment with a real systemd."""

import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

from strandline.clock import SystemClock, wait_until
from strandline.errors import ExitCode
from strandline.node.cli import main as cli
from strandline.node.systemd.units import quoted_for_unit
from strandline.setup.installation import Installation
from support.real_systemd import Systemd, running_systemd

CHECKOUT = Path(__file__).parents[2]
NODE, GATEWAY = "strandline-node", "strandline-gateway"
LEFT_OUT = "observe."
"""The prefix of the kernel files that a node has to compile itself."""
# No system user of Debian has this number.
_USER = {"passwd": "strandline:x:64990:64990::/nonexistent:/usr/sbin/nologin\n", "group": "strandline:x:64990:\n"}
# As docs/service.md has it for an installation in a home folder that is closed, or below /tmp; a log that tests can
# read; and no pause before a restart.
_DROP_IN = """[Service]
ProtectHome=tmpfs
BindReadOnlyPaths={checkout} {jars}
StandardOutput=append:/var/log/%p.log
RestartSec=100ms
"""


@dataclass(frozen=True)
class Units:
    """A machine with the units, of which none is started."""

    systemd: Systemd
    root: Path

    def configure(self, instance: str, settings: str) -> None:
        """Write the settings of an instance, readable by all users."""
        file = self.root / f"etc/strandline/{instance}.toml"
        file.write_text(settings)
        file.chmod(0o644)

    def change(self, name: str, directives: str) -> None:
        """Change a unit as `systemctl edit` does."""
        folder = self.root / f"etc/systemd/system/{name}@.service.d"
        folder.mkdir(exist_ok=True)
        (folder / f"{len(list(folder.iterdir()))}.conf").write_text(directives)
        self.done("daemon-reload")

    def done(self, *arguments: str) -> None:
        """Run `systemctl`, which must succeed."""
        try:
            done = self.systemd.control(*arguments)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"{error}\n{self.logs()}") from error
        assert done.returncode == 0, done.stderr + self.logs()

    def properties(self, unit: str) -> Mapping[str, str]:
        """The properties of a unit."""
        return self.systemd.properties(unit)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds."""
        assert wait_until(condition, timeout=120, clock=SystemClock(), poll=0.2), self.logs()

    def logs(self) -> str:
        """The last lines of the logs of the services and systemd."""
        files = [*sorted((self.root / "var/log").glob("strandline-*.log")), self.systemd.log]
        return "\n".join(f"{file.name}: {file.read_text()[-3000:]}" for file in files)


@contextmanager
def installed_units(root: Path) -> Iterator[Units]:
    """A machine with its own files in this folder."""
    assert cli.main(["install-units", "--root", str(root)]) == ExitCode.OK
    for name, line in _USER.items():
        (root / "etc" / name).write_text(Path("/etc", name).read_text() + line)
    _give_kernels(root)
    jars = Installation.load().spark_jars
    with running_systemd(root, (CHECKOUT, jars)) as systemd:
        units = Units(systemd, root)
        for name in (NODE, GATEWAY):
            units.change(name, _DROP_IN.format(checkout=_word(CHECKOUT), jars=_word(jars)))
        yield units


def _give_kernels(root: Path) -> None:
    """Copy the checkout's compiled kernels to the instance `metrics`, because compiling all of them would take longer
    than the rest of its start. One is left out, to be compiled and stored inside the sandbox.
    """
    packages = CHECKOUT / "src" / "strandline"
    for service in ("node", "gateway"):
        cache = root / f"var/cache/strandline/{service}-metrics/numba"
        for source in (packages / "kernels", *packages.glob("*/**/kernels")):
            place = cache / UserProvidedCacheLocator.get_suitable_cache_subpath(str(source / "any.py"))
            place.mkdir(parents=True)
            for compiled in (source / "__pycache__").glob("*.nb?"):
                if not compiled.name.startswith(LEFT_OUT):
                    shutil.copyfile(compiled, place / compiled.name)


def _word(path: Path) -> str:
    """A path for a directive that accepts several paths, each with a target after a colon."""
    return quoted_for_unit(path).replace(":", "\\:")

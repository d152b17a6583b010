"""A real systemd, the first process of its own namespaces, with the machine's programs and network but none of its
services.

Everything that it and its services can change is private: /run, /tmp and /dev are almost empty at first, `root/etc` is
overlaid on /etc and `root/var` on /var, and other files are read-only. The units are those of
`root/etc/systemd/system`. It ends with the process that started it.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from strandline.clock import SystemClock, wait_until
from strandline.node.tether import tethered

# The units on which those of a service depend, without their effects.
_TARGETS = ("test", "sysinit", "basic", "shutdown", "network-online", "multi-user")
_TARGET = "[Unit]\nDescription=There, and empty\nDefaultDependencies=no\n"
_BOOT = """
set -e
root=$1
shift
mount --make-rprivate /
umount --lazy /sys/fs/cgroup
machines=$(cut -d " " -f 2 /proc/self/mounts | grep -Ev "^/(proc|run|tmp|etc|var)(/|$)")
mount -t cgroup2 cgroup2 /sys/fs/cgroup
for file in sys sysrq-trigger; do
    if [ -e "/proc/$file" ]; then
        mount --bind "/proc/$file" "/proc/$file"
        mount -o remount,bind,ro "/proc/$file"
    fi
done
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/units /run/dev
mount --bind "$root/etc/systemd/system" /run/units
mount -t tmpfs -o mode=755 tmpfs /run/dev
for device in null zero full random urandom tty; do
    touch "/run/dev/$device"
    mount --bind "/dev/$device" "/run/dev/$device"
done
touch /run/dev/console
mount --bind /dev/null /run/dev/console
ln -s /proc/self/fd /run/dev/fd
mkdir /run/dev/shm /run/dev/pts
mount -t tmpfs -o mode=1777 tmpfs /run/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts /run/dev/pts
ln -s pts/ptmx /run/dev/ptmx
for folder in etc var; do
    mkdir -p "$root/work/$folder"
    mount -t overlay overlay -o "lowerdir=/$folder,upperdir=$root/$folder,workdir=$root/work/$folder" "/$folder"
done
# Settings that a test writes later are visible immediately; changes below an overlay may not be.
mount --bind "$root/etc/strandline" /etc/strandline
number=0
for path; do
    number=$((number + 1))
    mkdir -p "/run/kept/$number"
    mount --bind "$path" "/run/kept/$number"
done
mount -t tmpfs -o mode=1777 tmpfs /tmp
number=0
for path; do
    number=$((number + 1))
    mkdir -p "$path"
    mount --bind "/run/kept/$number" "$path"
    mount -o remount,bind,ro "$path"
done
for place in $machines; do
    mount -o remount,bind,ro "$(printf %b "$place")" 2> /dev/null || [ "$place" != / ]
done
mount --move /run/dev /dev
exec env -i PATH="$PATH" LC_ALL=C.UTF-8 container=strandline-test \
    SYSTEMD_UNIT_PATH=/run/units SYSTEMD_GENERATOR_PATH=/run/none SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/none \
    /lib/systemd/systemd --system --unit=test.target --log-target=console --show-status=no
"""


@dataclass(frozen=True)
class Systemd:
    """A running systemd."""

    pid: int
    log: Path

    def control(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `systemctl`; most verbs return when the job is done."""
        entered = ["nsenter", "--target", str(self.pid), "--pid", "--mount", "--uts", "--ipc", "--cgroup"]
        return subprocess.run(
            [*entered, "systemctl", "--no-pager", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0"},
        )

    def properties(self, unit: str) -> Mapping[str, str]:
        """The properties of a unit, from `systemctl show`."""
        lines = self.control("show", unit).stdout.splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


@contextmanager
def running_systemd(root: Path, reads: Iterable[Path]) -> Iterator[Systemd]:
    """A running systemd, which ends with its services when the context ends. `reads` are folders that they need and
    that may be below /tmp. Requires root.
    """
    assert os.geteuid() == 0, "only root can make the namespaces of a systemd"
    units, settings = root / "etc/systemd/system", root / "etc/systemd/system.conf.d"
    for made in (units, settings, root / "etc/strandline"):
        made.mkdir(parents=True, exist_ok=True)
    # Without the machine's hardware watchdog.
    (settings / "zz-test.conf").write_text("[Manager]\nRuntimeWatchdogSec=off\nRebootWatchdogSec=off\n")
    for name in _TARGETS:
        (units / f"{name}.target").write_text(_TARGET)
    (root / "var/log").mkdir(parents=True, exist_ok=True)
    for folder in (root, root / "etc", root / "var"):
        folder.chmod(0o755)
    below_tmp = [str(path) for path in reads if path.is_relative_to("/tmp")]
    log = root / "systemd.log"
    group = _own_control_group() / f"strandline-test-{uuid4().hex[:8]}"
    spaces = ["--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts", "--ipc", "--cgroup"]
    # In its own control group before it gets a namespace, of which the group is the root.
    joined = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
    booting = ["unshare", *spaces, "sh", "-c", _BOOT, "sh", str(root), *below_tmp]
    command = tethered(["/bin/sh", "-ec", joined, "sh", str(group), *booting])
    group.mkdir()
    try:
        with log.open("wb") as said:
            outer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            yield _booted(outer, log)
        finally:
            outer.kill()
            outer.wait()
    finally:
        _remove(group)


def _booted(outer: "subprocess.Popen[bytes]", log: Path) -> Systemd:
    found: list[Systemd] = []

    def is_up() -> bool:
        with suppress(OSError, ValueError):
            pid = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text())
            if Path(f"/proc/{pid}/comm").read_text() == "systemd\n":
                found[:] = [Systemd(pid, log)]
        return bool(found) and found[0].control("is-system-running").stdout == "running\n"

    wait_until(lambda: is_up() or outer.poll() is not None, timeout=60, clock=SystemClock())
    assert outer.poll() is None, f"systemd has ended with {outer.poll()}: {log.read_text()}"
    assert is_up(), log.read_text()
    return found[0]


def _own_control_group() -> Path:
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    mounted = next(Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2")
    own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    return mounted / own.lstrip("/")


def _remove(group: Path) -> None:
    """Remove a control group and those below it, when the last process has left."""

    def is_gone() -> bool:
        for folder in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            with suppress(OSError):
                folder.rmdir()
        with suppress(OSError):
            group.rmdir()
        return not group.exists()

    assert wait_until(is_gone, timeout=30, clock=SystemClock())

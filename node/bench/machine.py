"""A description of the machine on which a benchmark ran."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Machine:
    """The properties of a machine that affect measurements."""

    cpu: str
    cores: int
    memory_mb: int
    kernel: str
    python: str

    @classmethod
    def this(cls) -> "Machine":
        """The current machine."""
        cpu = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
        return cls(
            cpu=cpu[1] if cpu else platform.processor() or platform.machine(),
            cores=len(os.sched_getaffinity(0)),
            memory_mb=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // MIB,
            kernel=platform.release(),
            python=platform.python_version(),
        )

    def __str__(self) -> str:
        return f"{self.cpu}, {self.cores} cores, {self.memory_mb} MB, Linux {self.kernel}, Python {self.python}"

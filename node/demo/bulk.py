"""The bulk jobs of the demo: importing a small file, and exporting days to Parquet."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from strandline.node.demo.programs import ProgramFailed

HOSTS, SAMPLES_A_HOST, STEP_MS = 20, 300, 5_000
LABEL, VALUE = "source", "file"
"""A label that all series of the file have."""
_MAPPING = f"""\
metric = "demo_temperature"
value = "value"
time = {{column = "at", unit = "ms"}}
labels = ["host"]
constants = {{{LABEL} = "{VALUE}"}}
"""
# The timeout of a command. The first export and import on a machine compile kernels, which takes minutes on a busy
# machine.
_COMMAND_TIMEOUT_S = 900


@dataclass(frozen=True, slots=True)
class BulkCounts:
    """Samples in the file, samples found after its import, and exported samples."""

    in_file: int
    imported: int
    exported: int


def write_file(folder: Path, newest_ms: int) -> tuple[Path, Path]:
    """Write a CSV file with samples up to a time, and its mapping."""
    data, mapping = folder / "temperatures.csv", folder / "mapping.toml"
    rows = (
        f"host-{host},{newest_ms - age * STEP_MS},{20 + host + age % 7}"
        for age in reversed(range(SAMPLES_A_HOST))
        for host in range(HOSTS)
    )
    data.write_text("\n".join(["host,at,value", *rows]) + "\n", encoding="utf-8")
    mapping.write_text(_MAPPING, encoding="utf-8")
    return data, mapping


def exported_samples(folder: Path) -> int:
    """The number of samples in the files that the days' manifests name."""
    count = 0
    for manifest in folder.glob("*/_manifest.json"):
        for file in json.loads(manifest.read_bytes())["files"]:
            count += pq.read_metadata(manifest.with_name(file["name"])).num_rows
    return count


def strandline(arguments: list[str], settings: Path, environ: Mapping[str, str]) -> Any:
    """Run a `strandline` command, and return its JSON output. Raises `ProgramFailed` if it fails."""
    script, name = Path(sys.executable).with_name("strandline"), f"strandline {' '.join(arguments[:2])}"
    try:
        done = subprocess.run(
            [sys.executable, str(script), *arguments, "--config", str(settings), "--output", "json"],
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(
            f"{name} did not finish within {_COMMAND_TIMEOUT_S} s", remedy="Check whether the machine is overloaded"
        ) from error
    if done.returncode != 0:
        raise ProgramFailed(f"{name} ended with exit code {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)

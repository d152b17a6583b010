"""Bulk data in the demonstration: a small file is imported, and days are exported to Parquet."""

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
"""The label of all series that the file holds."""
_MAPPING = f"""\
metric = "demo_temperature"
value = "value"
time = {{column = "at", unit = "ms"}}
labels = ["host"]
constants = {{{LABEL} = "{VALUE}"}}
"""
# A command that hangs is given up. The first export and import on a machine compile their kernels, which takes minutes
# while other programs use all cores.
_COMMAND_S = 900


@dataclass(frozen=True, slots=True)
class BulkCounts:
    """Samples in the file, found again after its import, and exported."""

    in_file: int
    imported: int
    exported: int


def write_file(folder: Path, newest_ms: int) -> tuple[Path, Path]:
    """A CSV file with samples up to a time, and its mapping."""
    data, mapping = folder / "temperatures.csv", folder / "mapping.toml"
    rows = (
        f"host-{host},{newest_ms - place * STEP_MS},{20 + host + place % 7}"
        for place in reversed(range(SAMPLES_A_HOST))
        for host in range(HOSTS)
    )
    data.write_text("\n".join(["host,at,value", *rows]) + "\n", encoding="utf-8")
    mapping.write_text(_MAPPING, encoding="utf-8")
    return data, mapping


def exported_samples(folder: Path) -> int:
    """How many samples the files hold that the days' manifests name."""
    count = 0
    for manifest in folder.glob("*/_manifest.json"):
        for file in json.loads(manifest.read_bytes())["files"]:
            count += pq.read_metadata(manifest.with_name(file["name"])).num_rows
    return count


def strandline(arguments: list[str], settings: Path, environ: Mapping[str, str]) -> Any:
    """What a command of ours reports. Raises `ProgramFailed` if it ends with an error."""
    script, name = Path(sys.executable).with_name("strandline"), f"strandline {' '.join(arguments[:2])}"
    try:
        done = subprocess.run(
            [sys.executable, str(script), *arguments, "--config", str(settings), "--output", "json"],
            env=dict(environ),
            capture_output=True,
            text=True,
            check=False,
            timeout=_COMMAND_S,
        )
    except subprocess.TimeoutExpired as error:
        raise ProgramFailed(f"{name} did not finish within {_COMMAND_S} s", remedy="See what keeps it busy") from error
    if done.returncode != 0:
        raise ProgramFailed(f"{name} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)

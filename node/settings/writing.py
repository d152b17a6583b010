"""Writes settings files for the demo, benchmarks and tests."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_settings(path: Path, settings: Mapping[str, Mapping[str, object]]) -> Path:
    """Write a settings file with these sections, and return its path."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

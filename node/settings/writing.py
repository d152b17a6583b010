"""Settings files written by programs: demonstrations, benchmarks, tests."""

import json
from collections.abc import Mapping
from pathlib import Path


def write_settings(path: Path, settings: Mapping[str, Mapping[str, object]]) -> Path:
    """A settings file with these sections."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path

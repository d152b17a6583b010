"""Alert rules tested on series by promtool."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

RULES = Path(__file__).parents[2] / "conf" / "alerts" / "strandline.yaml"
# One value a minute; alerts are evaluated after this many minutes.
MINUTES = 200

Series = Mapping[str, str]


def run_promtool(tests: Sequence[Mapping[str, object]], folder: Path) -> tuple[int, str]:
    """Test the rules on these series."""
    # JSON is also YAML.
    document = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}
    written = folder / "tests.yaml"
    written.write_text(json.dumps(document), encoding="utf-8")
    ran = subprocess.run(
        ["promtool", "test", "rules", str(written)], capture_output=True, text=True, timeout=120, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


def at_instance(series: Sequence[Series], instance: str) -> list[Series]:
    """The same series with another instance, so that all cases fit into one test."""
    return [
        {**each, "series": each["series"].replace('instance="n:9460"', f'instance="{instance}"')} for each in series
    ]


def firing(alert: str, instance: str, times: int) -> Mapping[str, object]:
    """The expectation that an alert fires this many times."""
    expression = f'count(ALERTS{{alertname="{alert}",alertstate="firing",instance="{instance}"}})'
    expected = [{"labels": "{}", "value": times}] if times else []
    return {"expr": expression, "eval_time": f"{MINUTES}m", "exp_samples": expected}

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system


def test_the_demonstration_shows_every_part_and_leaves_nothing(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("strandline"), "demo", "--output", "json"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    saw = {part["name"]: part["saw"] for part in json.loads(done.stdout)["parts"]}
    assert list(saw) == ["Kafka", "Spark", "Cassandra", "Lucene"]
    assert "60,000 samples" in saw["Kafka"]
    assert "decoded 60,000 samples" in saw["Spark"]
    assert "20,000 part keys" in saw["Lucene"]
    assert list(tmp_path.glob("strandline-demo-*")) == []

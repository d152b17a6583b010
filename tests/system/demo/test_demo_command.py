import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

SERIES = 4_000


def test_the_demonstration_shows_that_nothing_is_lost_and_cleans_up(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    # A short name, because the length of socket paths is limited.
    folder = tmp_path_factory.mktemp("demo")
    command = [Path(sys.executable).with_name("strandline"), "demo", "--series", str(SERIES)]
    command += ["--flush-interval", "5", "--output", "json"]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder), "RUN_ONCE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    compared = report["comparison"]
    assert compared["acknowledged"] == compared["found"] == 13 * SERIES
    assert (compared["lost"], compared["doubled"], compared["wrong"], compared["foreign"]) == (0, 0, 0, 0)
    assert report["verified_shards"] == 2
    bulk = report["bulk"]
    assert bulk["imported"] == bulk["in_file"] == 6_000
    assert bulk["exported"] == 13 * SERIES // 4
    assert "kill -9 of the node" in [chapter["name"] for chapter in report["chapters"]]
    assert [shard["shard"] for shard in report["recovered"]] == [0, 1]
    for shard in report["recovered"]:
        assert shard["replay_jobs"] > 0, "Spark replayed something"
        assert shard["phases"]["replaying"] > 0
    assert list(folder.glob("strandline-demo-*")) == []

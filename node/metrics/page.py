"""The catalogue as a page of the documentation: `python -m strandline.node.metrics.page` prints docs/metrics.md."""

import sys

from strandline.node.metrics.catalogue import SECTIONS
from strandline.node.metrics.metric import Metric

_HEAD = """# Metrics

All that `/metrics` of a node and of a gateway tells, and nothing beside it. This page is made from the catalogue in
`node/metrics/` (`.venv/bin/python -m strandline.node.metrics.page > docs/metrics.md`); a test compares them.
[operations.md](operations.md) says how to scrape it, which figures to look at first, and what to do about each alert.

A figure that nobody knows is missing, never 0: the lag while Kafka is out of reach, all of a shard whose process is
down but for its state. Times are Unix times in seconds. Counters begin at 0 with each start of the process that they
belong to: for a shard's that is the shard's process.
"""


def metrics_page() -> str:
    """All of it, as Markdown."""
    parts = [_HEAD]
    for section in SECTIONS:
        parts.append(f"## {section.title}\n")
        parts.append("| metric | type | labels | what it means | what to do |\n| --- | --- | --- | --- | --- |")
        parts.extend(map(_row, section.metrics))
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.meaning} | {metric.action} |"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())

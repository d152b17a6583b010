"""Generates docs/metrics.md from the catalogue: `python -m strandline.node.metrics.page` prints it."""

import sys

from strandline.node.metrics.catalogue import SECTIONS
from strandline.node.metrics.metric import Metric

_HEAD = """# Metrics

All metrics that nodes and gateways export at `/metrics`. This page is generated from the catalogue in `node/metrics/`
(`.venv/bin/python -m strandline.node.metrics.page > docs/metrics.md`), and a test compares the two.
[operations.md](operations.md) explains how to scrape them and which to look at first, and has a runbook for each alert.

Unknown values are missing rather than 0: for example the lag while Kafka is unreachable, and all metrics except the
state of a shard whose process is down. Timestamps are Unix times in seconds. Counters start at 0 when the process that
they describe starts; for a shard's counters, that is the shard's process.
"""


def metrics_page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    for section in SECTIONS:
        parts.append(f"## {section.title}\n")
        parts.append("| metric | type | labels | meaning | action |\n| --- | --- | --- | --- | --- |")
        parts.extend(map(_row, section.metrics))
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels) or "-"
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.meaning} | {metric.action} |"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())

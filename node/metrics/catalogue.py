"""The catalogue of all metrics that a node or a gateway exposes.

Names begin with `strandline_` and use base units (seconds, bytes, ratios); those of counters end with `_total`. Times
are Unix times in seconds, with `timestamp` in the name. Unknown values are missing, never 0.
"""

from collections.abc import Iterable

from strandline.node.metrics.gateway_metrics import GATEWAY
from strandline.node.metrics.job_metrics import JOBS
from strandline.node.metrics.metric import Metric, Section
from strandline.node.metrics.node_metrics import BUILD, NODE
from strandline.node.metrics.shard_reading_metrics import READING
from strandline.node.metrics.shard_storing_metrics import STORING

SECTIONS: tuple[Section, ...] = (*NODE, *JOBS, *READING, *STORING, *GATEWAY)


def _all_of(sections: Iterable[Section]) -> tuple[Metric, ...]:
    return tuple(metric for section in sections for metric in section.metrics)


CATALOGUE = _all_of(SECTIONS)
NODE_METRICS = _all_of((*NODE, *JOBS, *READING, *STORING))
"""What a node exposes."""
GATEWAY_METRICS = (BUILD, *_all_of(GATEWAY))
"""What a gateway exposes."""

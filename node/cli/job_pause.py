"""`strandline job pause`: pause a job."""

from strandline.node.cli.job_stopping import stopping_command
from strandline.store.bulk_jobs import Wanted

command = stopping_command(
    "pause",
    Wanted.PAUSED,
    "Pause a job: workers take no more of its parts, and release those that they run within seconds. What has landed "
    "stays, and is not sent again after `strandline job resume`.",
)

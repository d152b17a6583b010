"""`strandline job pause`: pause a job."""

from strandline.node.cli.job_stopping import stopping_command
from strandline.store.bulk_jobs import Wanted

command = stopping_command(
    "pause",
    Wanted.PAUSED,
    "Pause a job: no more parts of it are taken, and those that run are given up within seconds. What has landed "
    "stays, and is not sent again after `strandline job resume`.",
)

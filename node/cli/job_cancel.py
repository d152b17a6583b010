"""`strandline job cancel`: cancel a job."""

from strandline.node.cli.job_stopping import stopping_command
from strandline.store.bulk_jobs import Wanted

command = stopping_command(
    "cancel",
    Wanted.CANCELLED,
    "Cancel a job for good. What has landed stays; nothing lands once this has returned with the state cancelled.",
)

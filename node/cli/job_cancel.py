"""`strandline job cancel`: cancel a job."""

from strandline.node.cli.job_stopping import stopping_command
from strandline.store.bulk_jobs import Wanted

command = stopping_command(
    "cancel",
    Wanted.CANCELLED,
    "Cancel a job permanently. What has landed stays. Nothing more lands once this command has returned with the state "
    "cancelled.",
)

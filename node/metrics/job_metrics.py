"""The metrics of bulk jobs, by kind and state: never by job, of which there is no end.

They are those of the dataset's store, so that every node of a dataset exposes the same: take the maximum over nodes,
not the sum.
"""

from strandline.node.metrics.metric import Section, counter, gauge

BY_STATE = gauge(
    "strandline_bulk_jobs",
    "Bulk jobs of the dataset that are in its store, by kind and state. Every node of a dataset exposes the same.",
    "Broken and failed: `strandline job list` and `strandline job status JOB` have the reason; see docs/jobs.md.",
    labels=("kind", "state"),
)
PARTS = gauge(
    "strandline_bulk_parts",
    "Parts of these jobs, by the job's kind and the part's state: pending, leased, done, failed.",
    "Pending and none leased: no worker runs, start `strandline job work`. Failed: the job's status has the reason.",
    labels=("kind", "state"),
)
RECORDS = counter(
    "strandline_bulk_records_total",
    "Records that jobs have read, bad ones included, since the HTTP front was started. Counted from the store: what an "
    "attempt that failed had read counts once.",
    "Its rate is the speed of all workers together. See strandline_bulk_stalled_seconds if it stands still.",
    labels=("kind",),
)
SAMPLES = counter(
    "strandline_bulk_samples_total",
    "Samples that jobs have landed, counted likewise.",
    "Compare it with strandline_lag_seconds: jobs with --rate leave room for live ingestion.",
    labels=("kind",),
)
BAD_RECORDS = counter(
    "strandline_bulk_bad_records_total",
    "Records that jobs could not use, counted likewise.",
    "Reasons and places are in `strandline job status JOB`. Above jobs.error_rate the job breaks.",
    labels=("kind",),
)
REFUSED_RECORDS = counter(
    "strandline_bulk_refused_records_total",
    "Records that Kafka did not take from jobs, counted likewise.",
    "The worker's log has Kafka's reason. They count for jobs.error_rate, too.",
    labels=("kind",),
)
BYTES = counter(
    "strandline_bulk_bytes_total",
    "Bytes that jobs have written, compressed, counted likewise.",
    "Bound it with --rate if brokers or disks are the bottleneck.",
    labels=("kind",),
)
EXPIRY = gauge(
    "strandline_bulk_expiry_seconds",
    "Until the next job that is paused or broken is cancelled, by jobs.expiry. Missing while no job is.",
    "`strandline job resume JOB`, or let it end: what has landed stays.",
    labels=("kind",),
)
STALLED = gauge(
    "strandline_bulk_stalled_seconds",
    "For how long a job that workers should work on has made no progress; of several jobs the longest time. Missing "
    "while there is none. It begins at 0 with the HTTP front's process.",
    "No worker runs, Kafka or the store does not answer it, or it waits for its rate or the lag limit: see its log.",
    labels=("kind",),
)
AGE = gauge(
    "strandline_bulk_age_seconds",
    "How old the figures on bulk jobs are. They are read from the store about every 15 seconds.",
    "Above a minute the store does not answer the node: see the log.",
)
FAILURES = counter(
    "strandline_bulk_look_failures_total",
    "How often the figures on bulk jobs could not be read.",
    "As for their age.",
)

JOBS: tuple[Section, ...] = (
    Section(
        "Bulk jobs",
        (
            BY_STATE,
            PARTS,
            RECORDS,
            SAMPLES,
            BAD_RECORDS,
            REFUSED_RECORDS,
            BYTES,
            EXPIRY,
            STALLED,
            AGE,
            FAILURES,
        ),
    ),
)

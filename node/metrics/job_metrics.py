"""The metrics of bulk jobs, by kind and state; not by job, because the number of jobs is unbounded.

They describe the dataset's store, so that every node of a dataset exposes the same values: use the maximum over nodes,
not the sum.
"""

from strandline.node.metrics.metric import Section, counter, gauge

BY_STATE = gauge(
    "strandline_bulk_jobs",
    "Bulk jobs in the dataset's store, by kind and state. Every node of a dataset exports the same values.",
    "Broken and failed: `strandline job list` and `strandline job status JOB` have the reason; see docs/jobs.md.",
    labels=("kind", "state"),
)
PARTS = gauge(
    "strandline_bulk_parts",
    "Parts of these jobs, by kind of job and state of the part: pending, leased, done, failed.",
    "Pending and none leased: no worker is running; start `strandline job work`. Failed: the job's status has the "
    "reason.",
    labels=("kind", "state"),
)
RECORDS = counter(
    "strandline_bulk_records_total",
    "Records that jobs have read, including bad ones, since the HTTP front started. Counted from the store: "
    "records of a failed attempt count once.",
    "Its rate is the speed of all workers together. If it does not rise, see strandline_bulk_stalled_seconds.",
    labels=("kind",),
)
SAMPLES = counter(
    "strandline_bulk_samples_total",
    "Samples that jobs have landed, counted like strandline_bulk_records_total.",
    "Compare with strandline_lag_seconds: jobs with --rate leave capacity for live ingestion.",
    labels=("kind",),
)
BAD_RECORDS = counter(
    "strandline_bulk_bad_records_total",
    "Records that jobs could not use, counted like strandline_bulk_records_total.",
    "`strandline job status JOB` lists reasons and places. Above jobs.error_rate the circuit breaker opens.",
    labels=("kind",),
)
REFUSED_RECORDS = counter(
    "strandline_bulk_refused_records_total",
    "Records of jobs that Kafka refused, counted like strandline_bulk_records_total.",
    "The worker's log has Kafka's reason. They count towards jobs.error_rate.",
    labels=("kind",),
)
BYTES = counter(
    "strandline_bulk_bytes_total",
    "Compressed bytes that jobs have written, counted like strandline_bulk_records_total.",
    "Limit it with --rate if brokers or disks are the bottleneck.",
    labels=("kind",),
)
EXPIRY = gauge(
    "strandline_bulk_expiry_seconds",
    "Time until the next paused or broken job is cancelled by jobs.expiry. Missing if there is none.",
    "`strandline job resume JOB`, or let it be cancelled: samples that have landed stay.",
    labels=("kind",),
)
STALLED = gauge(
    "strandline_bulk_stalled_seconds",
    "How long a job that workers should run has made no progress; the maximum over such jobs. Missing if there is "
    "none. Starts at 0 with the HTTP front's process.",
    "No worker is running, Kafka or the store does not answer it, or it waits for its rate or lag limit: see its log.",
    labels=("kind",),
)
AGE = gauge(
    "strandline_bulk_age_seconds",
    "Age of the bulk job metrics. They are read from the store about every 15 seconds.",
    "Above a minute, the store does not answer the node: see the log.",
)
FAILURES = counter(
    "strandline_bulk_look_failures_total",
    "Failed reads of the bulk job metrics.",
    "See strandline_bulk_age_seconds.",
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

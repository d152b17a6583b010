"""The metrics of a node as a whole: itself, its HTTP front, queries, and how far the dataset is stored."""

from strandline.node.metrics.metric import Section, counter, gauge, histogram, info

# The node.
BUILD = info(
    "strandline_build_info",
    "1, with the version of Strandline and of Python in labels.",
    "All nodes of a dataset should have one version.",
    labels=("version", "python"),
)
SHARDS = gauge(
    "strandline_shards",
    "Shards that this node serves.",
    "Each partition of the topic has to be served by one node; see node.shards.",
)
PARTITIONS = gauge(
    "strandline_topic_partitions",
    "Partitions of the topic, as the supervisor counted them last. Missing before that is known.",
    "More than the strandline_shards of all nodes together: some partition is served by no node; see node.shards.",
)
ACTIVE_SHARDS = gauge(
    "strandline_active_shards",
    "Shards of this node that are active: they answer for all that they should know.",
    "Less than strandline_shards: answers come with a warning. See strandline_phase.",
)
STARTED = gauge(
    "strandline_start_timestamp_seconds",
    "When the node's supervisor was started.",
    "A restart that nobody wanted: see the journal.",
)
SUPERVISOR_CPU = counter(
    "strandline_supervisor_cpu_seconds_total",
    "CPU time of the supervisor's process, which keeps the others and does nothing else.",
    "Well above 0.05 per second the supervisor is busy with restarts: see strandline_process_restarts_total.",
)
SUPERVISOR_RESIDENT = gauge(
    "strandline_supervisor_resident_memory_bytes",
    "Memory of the supervisor's process.",
    "It does not grow with data or queries; if it does, restart the node and report a bug.",
)
STATE_AGE = gauge(
    "strandline_supervisor_state_age_seconds",
    "How long ago the supervisor last told the front how the node stands. All metrics of shards are at least so old.",
    "Above a few seconds the supervisor hangs, or the machine is overloaded: systemd's watchdog restarts the node.",
)
PROCESS_STATE = gauge(
    "strandline_process_state",
    "1 for the state that a process is in: starting, running, waiting for its next start, down, stopped. front is the "
    "HTTP front; worker is the replay worker, which is stopped while there is no job.",
    "Down and waiting: `systemctl status` and the status page have the reason. A reload starts what is down.",
    labels=("process", "state"),
)
PROCESS_RESTARTS = counter(
    "strandline_process_restarts_total",
    "How often the node has started its front or its replay worker again after a failure.",
    "See the log for how it ended. Large queries that take the front's memory are bounded under [query].",
    labels=("process",),
)
NODE_CPU = counter(
    "strandline_node_cpu_seconds_total",
    "CPU time of the HTTP front's process, since that was started.",
    "Near 1 per second the front is the bottleneck of queries.",
)
NODE_RESIDENT = gauge(
    "strandline_node_resident_memory_bytes",
    "Memory of the HTTP front's process. Answers of shards are put together there.",
    "It grows with large queries: lower query.max_samples or query.concurrency.",
)
WATCHDOG_FEEDS = counter(
    "strandline_watchdog_feeds_total",
    "How often systemd's watchdog was fed. 0 where the unit has none.",
    "If it stops, systemd kills the node: the loop of the front or of some shard does not turn.",
)

# The HTTP front.
HTTP_REQUESTS = counter(
    "strandline_http_requests_total",
    "Requests that were answered, by handler (the path's pattern) and status code. 499: the client did not wait. "
    "503 also for an answer that was cut off by query.timeout.",
    "5xx is ours, see the log; 422 are limits on queries; 401 and 403 wrong tokens.",
    labels=("handler", "code"),
)
HTTP_SECONDS = histogram(
    "strandline_http_request_duration_seconds",
    "How long requests took, by handler.",
    "See strandline_queries_total for what is asked, and the CPU of node and shards.",
    labels=("handler",),
)
HTTP_IN_FLIGHT = gauge(
    "strandline_http_requests_in_flight",
    "Requests that are being answered.",
    "Standing at query.concurrency or more: queries wait for each other.",
)

# Queries.
QUERIES = counter(
    "strandline_queries_total",
    "Questions to the shards, by what was asked for (evaluate: a part of a PromQL query) and what came of it: "
    "answered, kept (by a list that the front had and that still held), warned (something may be missing), refused, "
    "too-large, no-memory (other answers took all of query.answer_memory), timed-out, cancelled, unavailable, failed.",
    "Warnings: a shard is not active. Too-large and timed-out: narrower queries, or other limits under [query]. "
    "No-memory: see strandline_answer_memory_bytes.",
    labels=("ask", "outcome"),
)
CUT_OFF_ANSWERS = counter(
    "strandline_cut_off_answers_total",
    "Answers that were broken off while they were sent, by reason: slow-reader (the client took less than "
    "http.min_rate), timed-out (query.timeout was over before the client had all of it).",
    "Timed-out: ask for less, or raise query.timeout. Slow-reader: see the client; lower http.min_rate for slow lines.",
    labels=("reason",),
)
ANSWER_MEMORY = gauge(
    "strandline_answer_memory_bytes",
    "Memory of answers, from the first byte that a shard sends until the client has taken the last.",
    "Near strandline_answer_memory_limit_bytes: clients read large answers slowly; more queries are refused with 503.",
)
ANSWER_MEMORY_LIMIT = gauge(
    "strandline_answer_memory_limit_bytes",
    "How much that may be: query.answer_memory.",
    "Raise query.answer_memory if the machine has the memory.",
)
QUERY_SAMPLES = counter(
    "strandline_query_samples_total",
    "Samples that queries have read.",
    "A step up: a new dashboard or rule reads far more than the others.",
)
QUERY_SERIES = counter(
    "strandline_query_series_total",
    "Series that queries have listed, or read samples of.",
    "A step up: somebody lists or reads far more series than before.",
)

# Readiness.
READY_HOUR_END = gauge(
    "strandline_newest_ready_hour_end_timestamp_seconds",
    "The end of the newest hour that is ready in all partitions of the dataset. Missing while there is none.",
    "See which partition is behind: strandline_partition_behind_seconds.",
)
STORED_UNTIL = gauge(
    "strandline_partition_stored_until_timestamp_seconds",
    "Up to when a partition is stored with all of its groups, whichever node serves it. Missing if it was never read.",
    "The lowest one holds back hours and days.",
    labels=("partition",),
)
BEHIND = gauge(
    "strandline_partition_behind_seconds",
    "How long ago that was.",
    "Up to two flush intervals is usual. Beyond: see the shard of that number, on the node that serves it.",
    labels=("partition",),
)
DATASET_FLUSH_INTERVAL = gauge(
    "strandline_dataset_flush_interval_seconds",
    "The flush interval that the dataset was made with, known whether or not a shard runs here.",
    "Nothing: what is usual for the age of stored data is measured by it.",
)
TOPIC_RETENTION = gauge(
    "strandline_topic_retention_seconds",
    "For how long Kafka keeps the topic's records. Missing if it keeps them for ever.",
    "A partition that is further behind than this has lost data: see strandline_partition_behind_seconds.",
)
UNREAD_PARTITIONS = gauge(
    "strandline_unread_partitions",
    "Partitions of the topic that nobody has ever read. While there is one no hour becomes ready.",
    "Add them to node.shards of some node, and reload it.",
)
READINESS_AGE = gauge(
    "strandline_readiness_age_seconds",
    "How old the figures on readiness are. They are read from the store about every 15 seconds.",
    "Above a minute the store or Kafka does not answer the node: see the log.",
)
READINESS_FAILURES = counter(
    "strandline_readiness_failures_total",
    "How often the figures on readiness could not be read.",
    "As for their age.",
)

NODE: tuple[Section, ...] = (
    Section(
        "The node",
        (
            BUILD,
            SHARDS,
            PARTITIONS,
            ACTIVE_SHARDS,
            STARTED,
            SUPERVISOR_CPU,
            SUPERVISOR_RESIDENT,
            STATE_AGE,
            PROCESS_STATE,
            PROCESS_RESTARTS,
            WATCHDOG_FEEDS,
        ),
    ),
    Section("The HTTP front", (NODE_CPU, NODE_RESIDENT, HTTP_REQUESTS, HTTP_SECONDS, HTTP_IN_FLIGHT)),
    Section("Queries", (QUERIES, CUT_OFF_ANSWERS, ANSWER_MEMORY, ANSWER_MEMORY_LIMIT, QUERY_SAMPLES, QUERY_SERIES)),
    Section(
        "Readiness",
        (
            READY_HOUR_END,
            STORED_UNTIL,
            BEHIND,
            DATASET_FLUSH_INTERVAL,
            TOPIC_RETENTION,
            UNREAD_PARTITIONS,
            READINESS_AGE,
            READINESS_FAILURES,
        ),
    ),
)

"""The metrics of a node: its processes, the HTTP front, queries, and the readiness of the dataset."""

from strandline.node.metrics.metric import Section, counter, gauge, histogram, info

# The node.
BUILD = info(
    "strandline_build_info",
    "1, with the versions of Strandline and Python as labels.",
    "All nodes of a dataset should run the same version.",
    labels=("version", "python"),
)
SHARDS = gauge(
    "strandline_shards",
    "Number of shards that this node serves.",
    "Each partition of the topic must be served by exactly one node; see node.shards.",
)
PARTITIONS = gauge(
    "strandline_topic_partitions",
    "Number of the topic's partitions, as last read by the supervisor. Missing until it is known.",
    "If it exceeds the sum of strandline_shards over all nodes, some partition is not served; see node.shards.",
)
ACTIVE_SHARDS = gauge(
    "strandline_active_shards",
    "Number of shards of this node that are active: their answers are complete.",
    "If it is less than strandline_shards, answers carry a warning. See strandline_phase.",
)
STARTED = gauge(
    "strandline_start_timestamp_seconds",
    "When the node's supervisor was started.",
    "If the restart was not planned, see the journal.",
)
SUPERVISOR_CPU = counter(
    "strandline_supervisor_cpu_seconds_total",
    "CPU time of the supervisor process, which only supervises the other processes.",
    "Well above 0.05 per second, the supervisor is busy with restarts: see strandline_process_restarts_total.",
)
SUPERVISOR_RESIDENT = gauge(
    "strandline_supervisor_resident_memory_bytes",
    "Resident memory of the supervisor process.",
    "It does not depend on data or queries. If it grows, restart the node and report a bug.",
)
STATE_AGE = gauge(
    "strandline_supervisor_state_age_seconds",
    "Time since the supervisor last sent the node's state to the front. All shard metrics are at least this old.",
    "Above a few seconds, the supervisor hangs or the machine is overloaded. systemd's watchdog restarts the node.",
)
PROCESS_STATE = gauge(
    "strandline_process_state",
    "1 for the current state of a process: starting, running, waiting (for its next start), down, stopped. front "
    "is the HTTP front; worker is the replay worker, which is stopped while there are no jobs.",
    "Down or waiting: `systemctl status` and the status page have the reason. A reload starts processes that are down.",
    labels=("process", "state"),
)
PROCESS_RESTARTS = counter(
    "strandline_process_restarts_total",
    "Restarts of the front or the replay worker after failures.",
    "The log says how it ended. Limit large queries that use up the front's memory with the settings in [query].",
    labels=("process",),
)
NODE_CPU = counter(
    "strandline_node_cpu_seconds_total",
    "CPU time of the HTTP front's process, since that process started.",
    "Near 1 per second, the front is the bottleneck for queries.",
)
NODE_RESIDENT = gauge(
    "strandline_node_resident_memory_bytes",
    "Resident memory of the HTTP front's process, which merges the answers of the shards.",
    "It grows with large queries: lower query.max_samples or query.concurrency.",
)
WATCHDOG_FEEDS = counter(
    "strandline_watchdog_feeds_total",
    "Notifications to systemd's watchdog. 0 if the unit has no watchdog.",
    "If it stops rising, systemd kills the node: the loop of the front or of a shard hangs.",
)

# The HTTP front.
HTTP_REQUESTS = counter(
    "strandline_http_requests_total",
    "Answered requests, by handler (the path's pattern) and status code. 499: the client disconnected. 503 "
    "includes answers that query.timeout cut off.",
    "5xx: see the log. 422: a limit on queries. 401 and 403: wrong tokens.",
    labels=("handler", "code"),
)
HTTP_SECONDS = histogram(
    "strandline_http_request_duration_seconds",
    "Duration of requests, by handler.",
    "See strandline_queries_total for the kind of requests, and the CPU of node and shards.",
    labels=("handler",),
)
HTTP_IN_FLIGHT = gauge(
    "strandline_http_requests_in_flight",
    "Requests that are being processed.",
    "If it stays at query.concurrency or above, queries wait for each other.",
)

# Queries.
QUERIES = counter(
    "strandline_queries_total",
    "Requests to the shards, by kind (evaluate: a fragment of a PromQL query) and outcome: answered, kept (from a "
    "cached list that was still valid), warned (the answer may be incomplete), refused, too-large, no-memory "
    "(other answers used all of query.answer_memory), timed-out, cancelled, unavailable, failed.",
    "Warned: a shard is not active. Too-large and timed-out: narrow the queries, or change the limits in [query]. "
    "No-memory: see strandline_answer_memory_bytes.",
    labels=("ask", "outcome"),
)
CUT_OFF_ANSWERS = counter(
    "strandline_cut_off_answers_total",
    "Answers that were cut off while they were being sent, by reason: slow-reader (the client read less than "
    "http.min_rate), timed-out (query.timeout passed before the client had read everything).",
    "Timed-out: query less data, or raise query.timeout. Slow-reader: check the client; lower http.min_rate for "
    "slow links.",
    labels=("reason",),
)
ANSWER_MEMORY = gauge(
    "strandline_answer_memory_bytes",
    "Memory of answers, from the first byte that a shard sends until the client has read the last.",
    "Near strandline_answer_memory_limit_bytes, clients read large answers slowly, and further queries are "
    "refused with 503.",
)
ANSWER_MEMORY_LIMIT = gauge(
    "strandline_answer_memory_limit_bytes",
    "The limit of strandline_answer_memory_bytes: query.answer_memory.",
    "Raise query.answer_memory if the machine has enough memory.",
)
QUERY_SAMPLES = counter(
    "strandline_query_samples_total",
    "Samples read by queries.",
    "A step up: a new dashboard or rule reads far more than the others.",
)
QUERY_SERIES = counter(
    "strandline_query_series_total",
    "Series that queries have listed or read samples of.",
    "A step up: a client lists or reads far more series than before.",
)

# Readiness.
READY_HOUR_END = gauge(
    "strandline_newest_ready_hour_end_timestamp_seconds",
    "End of the newest hour that is ready in all partitions of the dataset. Missing if there is none.",
    "See strandline_partition_behind_seconds for the partition that is behind.",
)
STORED_UNTIL = gauge(
    "strandline_partition_stored_until_timestamp_seconds",
    "Time up to which all groups of a partition are stored, whichever node serves it. Missing if the partition "
    "has never been read.",
    "The partition with the lowest value delays hours and days.",
    labels=("partition",),
)
BEHIND = gauge(
    "strandline_partition_behind_seconds",
    "Age of strandline_partition_stored_until_timestamp_seconds.",
    "Up to two flush intervals is normal. Above that, check the shard with that number, on the node that serves it.",
    labels=("partition",),
)
DATASET_FLUSH_INTERVAL = gauge(
    "strandline_dataset_flush_interval_seconds",
    "The flush interval with which the dataset was created. Exported even if the node has no running shard.",
    "None: alerts compare the age of stored data with it.",
)
TOPIC_RETENTION = gauge(
    "strandline_topic_retention_seconds",
    "How long Kafka keeps the topic's records. Missing if it keeps them forever.",
    "A partition that is further behind than this has lost data: see strandline_partition_behind_seconds.",
)
UNREAD_PARTITIONS = gauge(
    "strandline_unread_partitions",
    "Partitions of the topic that no shard has ever read. While there are any, no hour becomes ready.",
    "Add them to node.shards of a node, and reload it.",
)
READINESS_AGE = gauge(
    "strandline_readiness_age_seconds",
    "Age of the readiness metrics. They are read from the store about every 15 seconds.",
    "Above a minute, the store or Kafka does not answer the node: see the log.",
)
READINESS_FAILURES = counter(
    "strandline_readiness_failures_total",
    "Failed reads of the readiness metrics.",
    "See strandline_readiness_age_seconds.",
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

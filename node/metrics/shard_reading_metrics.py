"""The metrics of a shard, by its number: its process, and the way of samples up to the write buffer."""

from strandline.node.metrics.metric import Section, counter, gauge

SHARD = ("shard",)

# The process.
UP = gauge(
    "strandline_shard_up",
    "Whether the shard's process runs and tells about itself (1), or not (0).",
    "At 0 see strandline_shard_process_state and the node's log for the reason.",
    labels=SHARD,
)
PROCESS_STATE = gauge(
    "strandline_shard_process_state",
    "1 for the state that the shard's process is in: starting, running, waiting for its next start, down, stopped.",
    "Down stays down without a person: read the reason in the log or on the status page, mend it, restart the node.",
    labels=("shard", "state"),
)
RESTARTS = counter(
    "strandline_shard_restarts_total",
    "How often the node has started the shard's process again.",
    "Find the first error of the shard in the log; past node.restarts within node.restart_window it stays down.",
    labels=SHARD,
)
REPORT_AGE = gauge(
    "strandline_shard_report_age_seconds",
    "How long ago the shard's process last told about itself. The other metrics of the shard are so old.",
    "Above a few seconds the machine is overloaded, or the process hangs and will be killed.",
    labels=SHARD,
)
TURNS = counter(
    "strandline_shard_turns_total",
    "Turns of the shard's loop, and pieces of a start. systemd's watchdog is fed by it.",
    "A shard that does not turn is stuck: it is killed and started again after node.hang_after.",
    labels=SHARD,
)
CPU = counter(
    "strandline_shard_cpu_seconds_total",
    "CPU time that the shard's process has used.",
    "Near 1 per second a shard is at its limit: add partitions, or move shards to other nodes.",
    labels=SHARD,
)
STAGE_CPU = counter(
    "strandline_shard_stage_cpu_seconds_total",
    "CPU time by stage of the work: consume, snappy, decode, look-up, append, seal, merge, cut, encode, store.",
    "Shows where the time goes: look-up grows with new keys, encode and store with flushing.",
    labels=("shard", "stage"),
)
RESIDENT = gauge(
    "strandline_shard_resident_memory_bytes",
    "Memory that the shard's process has now.",
    "Lower shard.buffer_memory or shard.series_limit, or give the machine more, before the kernel ends the process.",
    labels=SHARD,
)
PEAK_RESIDENT = gauge(
    "strandline_shard_peak_resident_memory_bytes",
    "The most memory that the shard's process ever had.",
    "Plan the machine's memory by it, times the number of shards.",
    labels=SHARD,
)

# Ingestion.
RECORDS = counter(
    "strandline_ingested_records_total",
    "Records that were read from Kafka, by the shard or by a replay for it.",
    "At 0 per second while producers write: see lag and log retries.",
    labels=SHARD,
)
BYTES = counter(
    "strandline_ingested_bytes_total",
    "Bytes of those records, as they lie in Kafka.",
    "Compare with the partition's write rate in Kafka.",
    labels=SHARD,
)
SAMPLES = counter(
    "strandline_ingested_samples_total",
    "Samples in those records, the dropped ones included.",
    "The main figure of load; a step down means that a producer is gone.",
    labels=SHARD,
)
NEW_KEYS = counter(
    "strandline_new_keys_total",
    "Part keys that the index did not know.",
    "A high rate that lasts is churn: find the label that changes with status/tsdb or the cardinality explorer.",
    labels=SHARD,
)
REFUSED_ROWS = counter(
    "strandline_refused_rows_total",
    "Series of records that were refused because the shard has shard.series_limit keys. Their samples are not found.",
    "Remove the cause of the cardinality, or raise shard.series_limit together with memory.",
    labels=SHARD,
)
DROPPED_SERIES = counter(
    "strandline_dropped_series_total",
    "Series of records that were dropped, since they are no part key or break a limit on labels, by reason.",
    "See the reason: a producer sends what the protocol does not allow, or more than shard.max_labels and its like.",
    labels=("shard", "reason"),
)
DROPPED_SAMPLES = counter(
    "strandline_dropped_samples_total",
    "Samples that were dropped because their time is too far from their record's: too-old or too-far-ahead.",
    "Check the producers' clocks; the limits are shard.max_sample_age and shard.max_sample_ahead.",
    labels=("shard", "reason"),
)
SKIPPED = counter(
    "strandline_skipped_entries_total",
    "Histograms, exemplars and metadata that were skipped: Strandline stores float samples only.",
    "Have senders not send them, and classic histograms in place of native ones: see StrandlineEntriesSkipped.",
    labels=("shard", "kind"),
)
DEAD_LETTERS = counter(
    "strandline_dead_letters_total",
    "Records that could not be decoded, and were sent to the dead-letter topic.",
    "Read the topic <topic>-dead: headers tell partition, offset and reason. Find who writes such records.",
    labels=SHARD,
)
LOST_DEAD_LETTERS = counter(
    "strandline_lost_dead_letters_total",
    "Dead letters that the brokers did not take. The record itself is still in its topic, at the offset in the log.",
    "Check the dead-letter topic: whether it exists, may be written to, and takes records that large.",
    labels=SHARD,
)
LOG_RETRIES = counter(
    "strandline_log_retries_total",
    "How often Kafka was out of reach when it was read from or asked.",
    "Check the brokers and the network. Nothing is cut, and no hour becomes ready, meanwhile.",
    labels=SHARD,
)

# Lag.
POSITION = gauge(
    "strandline_position_offset",
    "The next offset that the shard reads.",
    "Standing still while producers write: see strandline_shard_turns_total and log retries.",
    labels=SHARD,
)
LAG_OFFSETS = gauge(
    "strandline_lag_offsets",
    "Offsets up to the last stable one that are not read yet. Missing while Kafka is out of reach.",
    "If it grows the shard is too slow: see its CPU, and whether it waits for the store.",
    labels=SHARD,
)
LAG_SECONDS = gauge(
    "strandline_lag_seconds",
    "For how long records may have waited in Kafka that are not read; 0 when all are read. Missing while unknown.",
    "Queries lack what is younger than this, and say so above shard.warn_behind. See strandline_lag_offsets and "
    "strandline_open_transaction_seconds.",
    labels=SHARD,
)
HELD_BACK = gauge(
    "strandline_held_back_offsets",
    "Offsets between the last stable one and the high watermark, which an open transaction keeps from being read.",
    "Find the producer that does not end its transaction: `kafka-transactions.sh describe-producers`.",
    labels=SHARD,
)
TRANSACTION_SECONDS = gauge(
    "strandline_open_transaction_seconds",
    "For how long the same open transaction has held back records of the partition. 0 if none does.",
    "Above a few seconds answers lack what lies behind it, and say so. End it: `kafka-transactions.sh abort`.",
    labels=SHARD,
)
NEWEST_RECORD = gauge(
    "strandline_newest_record_timestamp_seconds",
    "The record time of the newest record that was read.",
    "Far in the past without lag: nothing is written to the partition.",
    labels=SHARD,
)
CLOCK_DIFFERENCE = gauge(
    "strandline_clock_difference_seconds",
    "How far a clock is ahead of the present, the time that at least two of node, store and broker have reached;"
    " manifest is the newest time that an owner before has written.",
    "Fix time synchronisation there. Nothing is lost meanwhile; a clock that is behind may delay cuts.",
    labels=(*SHARD, "clock"),
)

# The write buffer.
BUFFER_SERIES = gauge(
    "strandline_buffer_series",
    "Series with samples in the open bucket's buffer.",
    "Compare with strandline_live_keys: far fewer means that many series pause.",
    labels=SHARD,
)
BUFFER_SAMPLES = gauge(
    "strandline_buffer_samples",
    "Samples in the open bucket's buffer.",
    "It falls to 0 with every cut; one that only rises is never cut: see Kafka and the clock.",
    labels=SHARD,
)
BUFFER_REPLACED = gauge(
    "strandline_buffer_replaced_samples",
    "Samples of the open bucket that a later one with the same series and time has replaced.",
    "Many mean that something is written twice: two agents with the same labels, or retries.",
    labels=SHARD,
)
BUFFER_BYTES = gauge(
    "strandline_buffer_memory_bytes",
    "Memory of the open bucket's buffer.",
    "Per sample a byte or two is usual.",
    labels=SHARD,
)
BUDGET_USED = gauge(
    "strandline_buffer_budget_used_bytes",
    "Memory of the buffers of all buckets that are not stored.",
    "At the limit pages spill to disk: see why flushing is behind, or raise shard.buffer_memory.",
    labels=SHARD,
)
BUDGET_LIMIT = gauge(
    "strandline_buffer_budget_limit_bytes",
    "The setting shard.buffer_memory.",
    "For comparison with what is used.",
    labels=SHARD,
)
SPILLED = gauge(
    "strandline_spilled_bytes",
    "Disk that spilled pages take, of all buckets that are not stored.",
    "In normal operation it is 0: raise shard.buffer_memory. While the store is away it grows: bring the store back.",
    labels=SHARD,
)
SPILL_LIMIT = gauge(
    "strandline_spill_limit_bytes",
    "The setting shard.spill_limit. A shard whose spill is full fails; nothing is lost, Kafka has the samples.",
    "For comparison with what is used.",
    labels=SHARD,
)
SEGMENT_CACHE_BYTES = gauge(
    "strandline_segment_cache_bytes",
    "Memory of stored segments that queries have read twice, and which the next query need not read from the store.",
    "For comparison with its limit.",
    labels=SHARD,
)
SEGMENT_CACHE_LIMIT = gauge(
    "strandline_segment_cache_limit_bytes",
    "The setting shard.segment_cache.",
    "For comparison with what is used.",
    labels=SHARD,
)
SEGMENT_CACHE_HITS = counter(
    "strandline_segment_cache_hits_total",
    "How often a query found the segments of a row of the manifest in memory.",
    "Compare with the misses.",
    labels=SHARD,
)
SEGMENT_CACHE_MISSES = counter(
    "strandline_segment_cache_misses_total",
    "How often a query read the segments of a row of the manifest from the store.",
    "Many beside few hits, with the cache at its limit: raise shard.segment_cache. Rows that are new always miss.",
    labels=SHARD,
)

# Kept results.
RESULT_CACHE = counter(
    "strandline_result_cache_fragments_total",
    "Parts of PromQL range queries that were evaluated, by how many of their steps were kept from an earlier query: "
    "all (hit), some (partial), or none (miss). Those that can't be kept, such as instant queries, are not counted.",
    "A refreshing dashboard is partial. Mostly misses: raise query.result_cache if strandline_result_cache_bytes "
    "is near it. Otherwise starts of queries are no multiples of their steps, or late samples come all the time.",
    labels=("shard", "outcome"),
)
RESULT_CACHE_BYTES = gauge(
    "strandline_result_cache_bytes",
    "Memory of the results that the shard keeps for range queries; query.result_cache bounds it.",
    "Part of strandline_shard_resident_memory_bytes: lower query.result_cache if the machine is short of memory.",
    labels=SHARD,
)

READING: tuple[Section, ...] = (
    Section("Shards: the process", (
        UP, PROCESS_STATE, RESTARTS, REPORT_AGE, TURNS, CPU, STAGE_CPU, RESIDENT, PEAK_RESIDENT,
    )),
    Section("Shards: ingestion", (
        RECORDS, BYTES, SAMPLES, NEW_KEYS, REFUSED_ROWS, DROPPED_SERIES, DROPPED_SAMPLES, SKIPPED,
        DEAD_LETTERS, LOST_DEAD_LETTERS, LOG_RETRIES,
    )),
    Section("Shards: lag", (
        POSITION, LAG_OFFSETS, LAG_SECONDS, HELD_BACK, TRANSACTION_SECONDS, NEWEST_RECORD, CLOCK_DIFFERENCE,
    )),
    Section("Shards: the write buffer", (
        BUFFER_SERIES, BUFFER_SAMPLES, BUFFER_REPLACED, BUFFER_BYTES, BUDGET_USED, BUDGET_LIMIT, SPILLED,
        SPILL_LIMIT,
    )),
    Section("Shards: kept results of queries", (
        RESULT_CACHE, RESULT_CACHE_BYTES,
    )),
    Section("Shards: segments in memory", (
        SEGMENT_CACHE_BYTES, SEGMENT_CACHE_LIMIT, SEGMENT_CACHE_HITS, SEGMENT_CACHE_MISSES,
    )),
)  # fmt: skip

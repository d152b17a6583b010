"""The metrics of a shard: its process, ingestion up to the write buffer, and caches."""

from strandline.node.metrics.metric import Section, counter, gauge

SHARD = ("shard",)

# The process.
UP = gauge(
    "strandline_shard_up",
    "1 if the shard's process runs and reports its state, else 0.",
    "At 0, see strandline_shard_process_state, and the node's log for the reason.",
    labels=SHARD,
)
PROCESS_STATE = gauge(
    "strandline_shard_process_state",
    "1 for the current state of the shard's process: starting, running, waiting (for its next start), down, stopped.",
    "A shard that is down is not restarted automatically: the log and the status page have the reason. Fix it, "
    "then restart the shard or the node.",
    labels=("shard", "state"),
)
RESTARTS = counter(
    "strandline_shard_restarts_total",
    "Restarts of the shard's process by the node.",
    "Find the shard's first error in the log. After node.restarts restarts within node.restart_window it stays down.",
    labels=SHARD,
)
REPORT_AGE = gauge(
    "strandline_shard_report_age_seconds",
    "Time since the shard's process last reported its state. The other metrics of the shard are this old.",
    "Above a few seconds, the machine is overloaded, or the process hangs and will be killed.",
    labels=SHARD,
)
TURNS = counter(
    "strandline_shard_turns_total",
    "Iterations of the shard's loop, and steps of a start. systemd's watchdog depends on it.",
    "A shard whose loop hangs is killed and restarted after node.hang_after.",
    labels=SHARD,
)
CPU = counter(
    "strandline_shard_cpu_seconds_total",
    "CPU time of the shard's process.",
    "Near 1 per second, the shard is at its limit: add partitions, or move shards to other nodes.",
    labels=SHARD,
)
STAGE_CPU = counter(
    "strandline_shard_stage_cpu_seconds_total",
    "CPU time by stage: consume, snappy, decode, lookup, append, seal, merge, cut, encode, store.",
    "Shows where the time goes: lookup grows with new keys, encode and store with flushing.",
    labels=("shard", "stage"),
)
RESIDENT = gauge(
    "strandline_shard_resident_memory_bytes",
    "Resident memory of the shard's process.",
    "Lower shard.buffer_memory or shard.series_limit, or add memory, before the kernel kills the process.",
    labels=SHARD,
)
PEAK_RESIDENT = gauge(
    "strandline_shard_peak_resident_memory_bytes",
    "Peak resident memory of the shard's process.",
    "Size the machine's memory by it, multiplied by the number of shards.",
    labels=SHARD,
)

# Ingestion.
RECORDS = counter(
    "strandline_ingested_records_total",
    "Records read from Kafka, by the shard or by a replay for it.",
    "At 0 per second while producers write: see lag and log retries.",
    labels=SHARD,
)
BYTES = counter(
    "strandline_ingested_bytes_total",
    "Bytes of those records, as stored in Kafka.",
    "Compare with the partition's write rate in Kafka.",
    labels=SHARD,
)
SAMPLES = counter(
    "strandline_ingested_samples_total",
    "Samples in those records, including dropped ones.",
    "The main load metric. A step down means that a producer has stopped.",
    labels=SHARD,
)
NEW_KEYS = counter(
    "strandline_new_keys_total",
    "Part keys that were new to the index.",
    "A high rate over a long time is churn: find the label that changes with status/tsdb or the cardinality explorer.",
    labels=SHARD,
)
REFUSED_ROWS = counter(
    "strandline_refused_rows_total",
    "Series of records that were refused because the shard has reached shard.series_limit. Queries do not find "
    "their samples.",
    "Remove the cause of the cardinality, or raise shard.series_limit together with memory.",
    labels=SHARD,
)
DROPPED_SERIES = counter(
    "strandline_dropped_series_total",
    "Series of records that were dropped because they are not valid part keys or exceed a label limit, by reason.",
    "By reason: a producer sends labels that the protocol does not allow, or that exceed shard.max_labels or a "
    "similar limit.",
    labels=("shard", "reason"),
)
DROPPED_SAMPLES = counter(
    "strandline_dropped_samples_total",
    "Samples that were dropped because their timestamp is too far from their record's: too-old or too-far-ahead.",
    "Check the producers' clocks. The limits are shard.max_sample_age and shard.max_sample_ahead.",
    labels=("shard", "reason"),
)
SKIPPED = counter(
    "strandline_skipped_entries_total",
    "Histograms, exemplars and metadata that were skipped: Strandline stores float samples only.",
    "Configure senders not to send them, and to use classic instead of native histograms: see "
    "StrandlineEntriesSkipped.",
    labels=("shard", "kind"),
)
DEAD_LETTERS = counter(
    "strandline_dead_letters_total",
    "Records that could not be decoded and were sent to the dead-letter topic.",
    "Read the topic <topic>-dead: headers have partition, offset and reason. Find the producer of these records.",
    labels=SHARD,
)
LOST_DEAD_LETTERS = counter(
    "strandline_lost_dead_letters_total",
    "Dead letters that the brokers did not accept. The record itself is still in its topic, at the offset in the log.",
    "Check that the dead-letter topic exists, that the node may write to it, and that it accepts records of that size.",
    labels=SHARD,
)
LOG_RETRIES = counter(
    "strandline_log_retries_total",
    "Polls or requests that failed because Kafka was unreachable.",
    "Check the brokers and the network. While Kafka is unreachable, no bucket is cut and no hour becomes ready.",
    labels=SHARD,
)

# Lag.
POSITION = gauge(
    "strandline_position_offset",
    "The next offset that the shard reads.",
    "If it does not rise while producers write, see strandline_shard_turns_total and log retries.",
    labels=SHARD,
)
LAG_OFFSETS = gauge(
    "strandline_lag_offsets",
    "Unread offsets up to the last stable offset. Missing while Kafka is unreachable.",
    "If it grows, the shard is too slow: check its CPU, and whether it waits for the store.",
    labels=SHARD,
)
LAG_SECONDS = gauge(
    "strandline_lag_seconds",
    "How long unread records may have been waiting in Kafka; 0 if all are read. Missing while unknown.",
    "Queries lack newer samples, and carry a warning above shard.warn_behind. See strandline_lag_offsets and "
    "strandline_open_transaction_seconds.",
    labels=SHARD,
)
HELD_BACK = gauge(
    "strandline_held_back_offsets",
    "Offsets between the last stable offset and the high watermark, which an open transaction holds back.",
    "Find the producer that does not end its transaction: `kafka-transactions.sh describe-producers`.",
    labels=SHARD,
)
TRANSACTION_SECONDS = gauge(
    "strandline_open_transaction_seconds",
    "How long the same open transaction has held back records of the partition. 0 if there is none.",
    "Above a few seconds, answers lack the records after it and carry a warning. Abort it: `kafka-transactions.sh "
    "abort`.",
    labels=SHARD,
)
NEWEST_RECORD = gauge(
    "strandline_newest_record_timestamp_seconds",
    "Timestamp of the newest record that was read.",
    "If it is old although there is no lag, no producer writes to the partition.",
    labels=SHARD,
)
CLOCK_DIFFERENCE = gauge(
    "strandline_clock_difference_seconds",
    "How far a clock is ahead of the present, the time that at least two of node, store and broker have reached. "
    "manifest is the newest time that a previous owner has written.",
    "Fix time synchronisation there. Nothing is lost. A clock that is behind may delay cuts.",
    labels=(*SHARD, "clock"),
)

# The write buffer.
BUFFER_SERIES = gauge(
    "strandline_buffer_series",
    "Series with samples in the open bucket's buffer.",
    "Compare with strandline_live_keys: a far lower value means that many series pause.",
    labels=SHARD,
)
BUFFER_SAMPLES = gauge(
    "strandline_buffer_samples",
    "Samples in the open bucket's buffer.",
    "It falls to 0 with every cut. If it only rises, buckets are not cut: check Kafka and the clock.",
    labels=SHARD,
)
BUFFER_REPLACED = gauge(
    "strandline_buffer_replaced_samples",
    "Samples of the open bucket that were replaced by a later one with the same series and timestamp.",
    "Many mean duplicate writes: two agents with the same labels, or retries.",
    labels=SHARD,
)
BUFFER_BYTES = gauge(
    "strandline_buffer_memory_bytes",
    "Memory of the open bucket's buffer.",
    "One or two bytes per sample is normal.",
    labels=SHARD,
)
BUDGET_USED = gauge(
    "strandline_buffer_budget_used_bytes",
    "Memory of the buffers of all unstored buckets.",
    "At the limit, pages spill to disk: find out why flushing is behind, or raise shard.buffer_memory.",
    labels=SHARD,
)
BUDGET_LIMIT = gauge(
    "strandline_buffer_budget_limit_bytes",
    "The setting shard.buffer_memory.",
    "Compare with strandline_buffer_budget_used_bytes.",
    labels=SHARD,
)
SPILLED = gauge(
    "strandline_spilled_bytes",
    "Disk space of spilled pages, over all unstored buckets.",
    "0 in normal operation; otherwise raise shard.buffer_memory. It grows while the store is unavailable: bring "
    "the store back.",
    labels=SHARD,
)
SPILL_LIMIT = gauge(
    "strandline_spill_limit_bytes",
    "The setting shard.spill_limit. A shard whose spill is full fails. Nothing is lost, because Kafka has the samples.",
    "Compare with strandline_spilled_bytes.",
    labels=SHARD,
)
SEGMENT_CACHE_BYTES = gauge(
    "strandline_segment_cache_bytes",
    "Memory of stored segments that queries have read twice. Later queries need not read them from the store.",
    "Compare with strandline_segment_cache_limit_bytes.",
    labels=SHARD,
)
SEGMENT_CACHE_LIMIT = gauge(
    "strandline_segment_cache_limit_bytes",
    "The setting shard.segment_cache.",
    "Compare with strandline_segment_cache_bytes.",
    labels=SHARD,
)
SEGMENT_CACHE_HITS = counter(
    "strandline_segment_cache_hits_total",
    "How often a query found the segments of a manifest row in memory.",
    "Compare with strandline_segment_cache_misses_total.",
    labels=SHARD,
)
SEGMENT_CACHE_MISSES = counter(
    "strandline_segment_cache_misses_total",
    "How often a query read the segments of a manifest row from the store.",
    "Many misses and few hits, with the cache at its limit: raise shard.segment_cache. New rows always miss.",
    labels=SHARD,
)

# Result cache.
RESULT_CACHE = counter(
    "strandline_result_cache_fragments_total",
    "Fragments of PromQL range queries, by how many of their steps came from the cache: all (hit), some "
    "(partial), or none (miss). Fragments that can't be cached, such as those of instant queries, are not "
    "counted.",
    "A refreshing dashboard gives partial hits. If misses dominate, raise query.result_cache if "
    "strandline_result_cache_bytes is near it. Otherwise the starts of queries are not multiples of their steps, "
    "or late samples keep arriving.",
    labels=("shard", "outcome"),
)
RESULT_CACHE_BYTES = gauge(
    "strandline_result_cache_bytes",
    "Memory of the shard's cached results of range queries; limited by query.result_cache.",
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
    Section("Shards: result cache", (
        RESULT_CACHE, RESULT_CACHE_BYTES,
    )),
    Section("Shards: segment cache", (
        SEGMENT_CACHE_BYTES, SEGMENT_CACHE_LIMIT, SEGMENT_CACHE_HITS, SEGMENT_CACHE_MISSES,
    )),
)  # fmt: skip

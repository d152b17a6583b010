"""The metrics of a shard: flushing, the index and its buckets, the manifest, and recovery."""

from strandline.node.metrics.metric import Section, counter, gauge

SHARD = ("shard",)

# Flushing.
STORED_SEGMENTS = counter(
    "strandline_stored_segments_total",
    "Chunk segments referenced by the manifest, including those of replays.",
    "Rows in the store; see strandline_stored_bytes_total for their size.",
    labels=SHARD,
)
STORED_SAMPLES = counter(
    "strandline_stored_samples_total",
    "Samples in those segments.",
    "Over a day it follows strandline_ingested_samples_total, minus dropped and replaced samples.",
    labels=SHARD,
)
STORED_SERIES = counter(
    "strandline_stored_series_total",
    "Series in those segments, counted once per bucket.",
    "Samples divided by series is the run length; short runs compress badly.",
    labels=SHARD,
)
STORED_BYTES = counter(
    "strandline_stored_bytes_total",
    "Bytes of the segments that this shard wrote itself.",
    "Divided by samples it is the cost of a sample; 0.5 to 2 is normal.",
    labels=SHARD,
)
STORE_RETRIES = counter(
    "strandline_store_retries_total",
    "Store operations that failed and are retried.",
    "Check the store's health and timeouts. Until an operation succeeds, the samples stay in memory, on disk, and "
    "in Kafka.",
    labels=SHARD,
)
STORE_UNANSWERED = gauge(
    "strandline_store_unanswered_seconds",
    "How long the shard's requests to the store have gone unanswered; 0 while the store answers.",
    "From 30 on, the node is not ready: check the store's servers and the network. The node becomes ready again "
    "with the first answer.",
    labels=SHARD,
)
UNSTORED_BUCKETS = gauge(
    "strandline_unstored_buckets",
    "Closed buckets that are not completely stored.",
    "One is normal most of the time, because writes are spread over shard.flush_spread of the interval. Two or "
    "more is not.",
    labels=SHARD,
)
UNSTORED_AGE = gauge(
    "strandline_oldest_unstored_bucket_age_seconds",
    "Time since the end of the oldest closed bucket that is not completely stored; 0 if all are stored.",
    "Above two flush intervals, flushing is behind: see store retries.",
    labels=SHARD,
)
LAST_STORED = gauge(
    "strandline_last_stored_timestamp_seconds",
    "When a group's row was last committed.",
    "If it is older than two flush intervals, nothing is being stored.",
    labels=SHARD,
)
FLUSH_INTERVAL = gauge(
    "strandline_flush_interval_seconds",
    "The time that a bucket covers.",
    "Compare ages with it.",
    labels=SHARD,
)

# The index.
KEYS = gauge(
    "strandline_keys",
    "Part keys in the index: live keys, and ended keys within the retention.",
    "See strandline_keys_limit.",
    labels=SHARD,
)
LIVE_KEYS = gauge(
    "strandline_live_keys",
    "Part keys that have not ended.",
    "Far fewer than strandline_keys means churn: series come and go.",
    labels=SHARD,
)
KEYS_LIMIT = gauge(
    "strandline_keys_limit",
    "The setting shard.series_limit. Beyond it, new series are refused.",
    "Before it is reached, find the cause of the cardinality, or raise it together with memory.",
    labels=SHARD,
)
NEXT_PART_ID = gauge(
    "strandline_next_part_id",
    "The next part id. Ids are never reused, and there are 4.29 billion.",
    "At 4 billion, move the dataset to a topic with more partitions.",
    labels=SHARD,
)
REFRESH_LAG = gauge(
    "strandline_refresh_lag_seconds",
    "How long the oldest key change that searches do not see yet has been waiting.",
    "Normally below shard.index_refresh plus a second. Above that, the index is overloaded: see new keys and the CPU.",
    labels=SHARD,
)
LUCENE_BYTES = gauge(
    "strandline_lucene_bytes",
    "Disk space of the local Lucene index.",
    "Size shard.data_dir by it; merging needs as much again until the next bucket is stored.",
    labels=SHARD,
)

# Buckets.
BUCKET_START = gauge(
    "strandline_open_bucket_start_timestamp_seconds",
    "Start of the index's open bucket.",
    "Older than a flush interval plus the grace: buckets are not cut, or a replay is running.",
    labels=SHARD,
)
BUCKET_ACTIVE = gauge(
    "strandline_open_bucket_active_keys",
    "Keys with a sample in the open bucket.",
    "The current cardinality.",
    labels=SHARD,
)
BUCKET_CHANGED = gauge(
    "strandline_open_bucket_changed_keys",
    "Keys whose record the open bucket will store: keys that started, resumed, or got an earlier start.",
    "Near strandline_open_bucket_active_keys in every bucket means churn.",
    labels=SHARD,
)
CUTS = counter(
    "strandline_cuts_total",
    "Buckets that were closed.",
    "One per flush interval. None means that neither records nor the clock can close them: see Kafka.",
    labels=SHARD,
)
INDEX_RECORDS = counter(
    "strandline_index_records_total",
    "Key records in stored index buckets.",
    "Subtract strandline_rolled_over_keys_total to get the changes.",
    labels=SHARD,
)
ROLLED_OVER = counter(
    "strandline_rolled_over_keys_total",
    "Key records that were written again only because the bucket that contains them is about to expire.",
    "One wave per retention is normal. It makes index buckets large: see strandline_last_index_bucket_bytes.",
    labels=SHARD,
)
ENDED = counter(
    "strandline_ended_keys_total",
    "Keys that ended: they had no sample for dataset.stale_after.",
    "A step means that a producer has stopped.",
    labels=SHARD,
)
INDEX_BYTES = counter(
    "strandline_index_bytes_total",
    "Bytes of index buckets written.",
    "The store load caused by keys.",
    labels=SHARD,
)
LAST_INDEX_BYTES = gauge(
    "strandline_last_index_bucket_bytes",
    "Bytes of the last index bucket written.",
    "A restart reads one such bucket for each bucket of the retention that its local copy lacks.",
    labels=SHARD,
)

# The manifest.
CHECKPOINT = gauge(
    "strandline_checkpoint_offset",
    "The lowest unstored offset, where a restart continues reading. Missing before the first start.",
    "Its distance to strandline_position_offset is what a crash would replay.",
    labels=SHARD,
)
MANIFEST_ROWS = gauge(
    "strandline_manifest_rows",
    "Unexpired rows of the shard's manifest.",
    "Settings that lead to more than 500,000 rows are refused: use fewer groups, longer intervals or a shorter "
    "history.",
    labels=SHARD,
)
EPOCH = gauge(
    "strandline_epoch",
    "How often ownership of the shard was taken, by any process.",
    "If it rises on two nodes in turn, both serve the same shard. List each shard in the node.shards of one node only.",
    labels=SHARD,
)

# Recovery.
PHASE = gauge(
    "strandline_phase",
    "1 for the shard's current phase: acquiring, recovering-index, replaying, catching-up, active, or an end state.",
    "Only active is ready. For other phases see the progress; fenced and failed need an operator.",
    labels=("shard", "phase"),
)
PROGRESS = gauge(
    "strandline_phase_progress_ratio",
    "Completed share of the phase. Missing if the phase has no measurable progress.",
    "If it does not rise for minutes, see store and log retries, and the replay jobs.",
    labels=SHARD,
)
TIME_LEFT = gauge(
    "strandline_phase_time_left_seconds",
    "Estimated time until the phase ends, at its current rate.",
    "Compare with strandline_retention_margin_seconds: the recovery must finish first.",
    labels=SHARD,
)
START_SECONDS = gauge(
    "strandline_start_phase_seconds",
    "Duration of each phase of the shard's last start, up to now for the current phase.",
    "Long recovering-index: the local copy was not used, see the log. Long replaying: use Spark, or give it more "
    "cores.",
    labels=("shard", "phase"),
)
RETENTION_MARGIN = gauge(
    "strandline_retention_margin_seconds",
    "How long Kafka is guaranteed to keep records that are not stored; negative once they may be deleted. Missing "
    "if Kafka keeps records forever.",
    "If it shrinks, fix storing, or raise the topic's retention.ms immediately, which takes effect at once.",
    labels=SHARD,
)
KAFKA_RETENTION = gauge(
    "strandline_kafka_retention_seconds",
    "The topic's retention. Missing if it keeps its records forever.",
    "Compare with strandline_retention_margin_seconds.",
    labels=SHARD,
)
REPLAY_JOBS = gauge(
    "strandline_replay_jobs",
    "The shard's replay jobs by state: pending, leased, done, failed. All 0 if there is no replay.",
    "Pending without leased: no worker is running, see the node's log. Failed: see `strandline recover status`.",
    labels=("shard", "state"),
)

STORING: tuple[Section, ...] = (
    Section("Shards: flushing", (
        STORED_SEGMENTS, STORED_SAMPLES, STORED_SERIES, STORED_BYTES, STORE_RETRIES, STORE_UNANSWERED, UNSTORED_BUCKETS,
        UNSTORED_AGE, LAST_STORED, FLUSH_INTERVAL,
    )),
    Section("Shards: the index", (
        KEYS, LIVE_KEYS, KEYS_LIMIT, NEXT_PART_ID, REFRESH_LAG, LUCENE_BYTES,
    )),
    Section("Shards: buckets", (
        BUCKET_START, BUCKET_ACTIVE, BUCKET_CHANGED, CUTS, INDEX_RECORDS, ROLLED_OVER, ENDED, INDEX_BYTES,
        LAST_INDEX_BYTES,
    )),
    Section("Shards: the manifest", (
        CHECKPOINT, MANIFEST_ROWS, EPOCH,
    )),
    Section("Shards: recovery", (
        PHASE, PROGRESS, TIME_LEFT, START_SECONDS, RETENTION_MARGIN, KAFKA_RETENTION, REPLAY_JOBS,
    )),
)  # fmt: skip

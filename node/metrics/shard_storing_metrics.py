"""The metrics of a shard, by its number: flushing, the index and its buckets, the manifest, and recovery."""

from strandline.node.metrics.metric import Section, counter, gauge

SHARD = ("shard",)

# Flushing.
STORED_SEGMENTS = counter(
    "strandline_stored_segments_total",
    "Chunk segments that the manifest names, those of replays included.",
    "Rows of the store; see strandline_stored_bytes_total for their size.",
    labels=SHARD,
)
STORED_SAMPLES = counter(
    "strandline_stored_samples_total",
    "Samples in those segments.",
    "Over a day it follows strandline_ingested_samples_total, less what was dropped or replaced.",
    labels=SHARD,
)
STORED_SERIES = counter(
    "strandline_stored_series_total",
    "Series in those segments, counted once for each bucket.",
    "Samples by series tells how long the runs are; short ones compress badly.",
    labels=SHARD,
)
STORED_BYTES = counter(
    "strandline_stored_bytes_total",
    "Bytes of the segments that this shard wrote itself.",
    "By samples it is what a sample costs; from 0.5 to 2 is usual.",
    labels=SHARD,
)
STORE_RETRIES = counter(
    "strandline_store_retries_total",
    "Pieces of storing that failed and are tried again.",
    "Check the store's health and time-outs. Until it works the samples stay in memory, on disk, and in Kafka.",
    labels=SHARD,
)
STORE_UNANSWERED = gauge(
    "strandline_store_unanswered_seconds",
    "For how long the store has been asked by the shard without an answer; 0 while it answers.",
    "From 30 on the node is not ready: check the store's servers and the network. It turns back by itself.",
    labels=SHARD,
)
UNSTORED_BUCKETS = gauge(
    "strandline_unstored_buckets",
    "Closed buckets of which something is not stored.",
    "One for most of the time is usual: writes are spread over shard.flush_spread of the interval. Two or more is not.",
    labels=SHARD,
)
UNSTORED_AGE = gauge(
    "strandline_oldest_unstored_bucket_age_seconds",
    "How long ago the oldest closed bucket ended of which something is not stored; 0 if all are stored.",
    "Above two flush intervals storing is behind: see store retries.",
    labels=SHARD,
)
LAST_STORED = gauge(
    "strandline_last_stored_timestamp_seconds",
    "When a group's row was last committed.",
    "Further back than two flush intervals nothing is stored any more.",
    labels=SHARD,
)
FLUSH_INTERVAL = gauge(
    "strandline_flush_interval_seconds",
    "How much time a bucket covers.",
    "For comparison with ages.",
    labels=SHARD,
)

# The index.
KEYS = gauge(
    "strandline_keys",
    "Part keys in the index: live ones, and ended ones within the retention.",
    "See strandline_keys_limit.",
    labels=SHARD,
)
LIVE_KEYS = gauge(
    "strandline_live_keys",
    "Part keys that have not ended.",
    "Far fewer than strandline_keys is churn: series come and go.",
    labels=SHARD,
)
KEYS_LIMIT = gauge(
    "strandline_keys_limit",
    "The setting shard.series_limit. Past it new series are refused.",
    "Before it is reached find what makes the cardinality, or raise it together with memory.",
    labels=SHARD,
)
NEXT_PART_ID = gauge(
    "strandline_next_part_id",
    "The next part id. Ids are given once, and there are 4.29 billion.",
    "At 4 billion move the dataset to more partitions.",
    labels=SHARD,
)
REFRESH_LAG = gauge(
    "strandline_refresh_lag_seconds",
    "For how long the oldest change of keys waits that searches do not see.",
    "Usually under shard.index_refresh and a second. Above it the index is overloaded: see new keys and the CPU.",
    labels=SHARD,
)
LUCENE_BYTES = gauge(
    "strandline_lucene_bytes",
    "Disk that the local Lucene index takes.",
    "Plan shard.data_dir by it; merging takes as much again until the next bucket is stored.",
    labels=SHARD,
)

# Buckets.
BUCKET_START = gauge(
    "strandline_open_bucket_start_timestamp_seconds",
    "Where the open bucket of the index begins.",
    "More than a flush interval and the grace ago: buckets are not cut, or a replay is under way.",
    labels=SHARD,
)
BUCKET_ACTIVE = gauge(
    "strandline_open_bucket_active_keys",
    "Keys with a sample in the open bucket.",
    "Cardinality as it is now.",
    labels=SHARD,
)
BUCKET_CHANGED = gauge(
    "strandline_open_bucket_changed_keys",
    "Keys whose record the open bucket will store: started, resumed, or start lowered.",
    "Near strandline_open_bucket_active_keys in every bucket means churn.",
    labels=SHARD,
)
CUTS = counter(
    "strandline_cuts_total",
    "Buckets that were closed.",
    "One each flush interval; none means that neither records nor the clock can close them: see Kafka.",
    labels=SHARD,
)
INDEX_RECORDS = counter(
    "strandline_index_records_total",
    "Records of keys in the index buckets that were stored.",
    "Compare with the roll-overs: what is left is change.",
    labels=SHARD,
)
ROLLED_OVER = counter(
    "strandline_rolled_over_keys_total",
    "Records of those that were written again only because the bucket that held them goes.",
    "A wave each retention is usual. It makes index buckets large: see strandline_last_index_bucket_bytes.",
    labels=SHARD,
)
ENDED = counter(
    "strandline_ended_keys_total",
    "Keys that ended: no sample for dataset.stale_after.",
    "A step means that a producer is gone.",
    labels=SHARD,
)
INDEX_BYTES = counter(
    "strandline_index_bytes_total",
    "Bytes of index buckets that were written.",
    "The store's load for keys.",
    labels=SHARD,
)
LAST_INDEX_BYTES = gauge(
    "strandline_last_index_bucket_bytes",
    "Bytes of the index bucket that was last written.",
    "A restart reads one of these for each bucket of the retention that its local copy lacks.",
    labels=SHARD,
)

# The manifest.
CHECKPOINT = gauge(
    "strandline_checkpoint_offset",
    "The lowest offset that is not stored; a restart reads on from there. Missing before the first start.",
    "The distance to strandline_position_offset is what a crash would replay.",
    labels=SHARD,
)
MANIFEST_ROWS = gauge(
    "strandline_manifest_rows",
    "Rows of the shard's manifest that have not expired.",
    "Beyond 500,000 a start is refused by its settings: fewer groups, longer intervals or a shorter history.",
    labels=SHARD,
)
EPOCH = gauge(
    "strandline_epoch",
    "How often the shard was taken, by whomever.",
    "Rising on two nodes in turn: both serve the same shard. Name each shard in one node's node.shards.",
    labels=SHARD,
)

# Recovery.
PHASE = gauge(
    "strandline_phase",
    "1 for the phase that the shard is in: acquiring, recovering-index, replaying, catching-up, active, and the ends.",
    "Only active is ready. See the progress of the others; fenced and failed need a person.",
    labels=("shard", "phase"),
)
PROGRESS = gauge(
    "strandline_phase_progress_ratio",
    "How much of the phase is done. Missing where that has no meaning.",
    "Standing still for minutes: see store and log retries, and the jobs of the replay.",
    labels=SHARD,
)
TIME_LEFT = gauge(
    "strandline_phase_time_left_seconds",
    "How long the phase will still take if it goes on as it did.",
    "Compare with strandline_retention_margin_seconds: the recovery has to win.",
    labels=SHARD,
)
START_SECONDS = gauge(
    "strandline_start_phase_seconds",
    "How long each phase of the shard's last start took, or has taken up to now.",
    "A long recovering-index: the local copy was not used, see the log. A long replaying: more Spark, or more of it.",
    labels=("shard", "phase"),
)
RETENTION_MARGIN = gauge(
    "strandline_retention_margin_seconds",
    "For how long Kafka surely keeps what is not stored; negative once it may be deleted. Missing if it keeps all.",
    "When it shrinks, bring storing back, or raise the topic's retention.ms at once: it counts from then on.",
    labels=SHARD,
)
KAFKA_RETENTION = gauge(
    "strandline_kafka_retention_seconds",
    "How long the topic keeps its records. Missing where it keeps them for ever.",
    "For comparison with the margin.",
    labels=SHARD,
)
REPLAY_JOBS = gauge(
    "strandline_replay_jobs",
    "Jobs of the shard's replay by state: pending, leased, done, failed. All 0 when there is none.",
    "Pending without leased: no worker runs, see the node's log. Failed: see `strandline recover status`.",
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

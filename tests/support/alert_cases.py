"""Values of metrics for which each alert fires, and close ones for which it must not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from support.promtool import MINUTES, Series


def shard(name: str, values: str, **labels: str) -> Series:
    return of("strandline_" + name, values, shard="0", **labels)


def of(name: str, values: str, job: str = "strandline", **labels: str) -> Series:
    all_labels = {"job": job, "instance": "n:9460", **labels}
    inside = ",".join(f'{label}="{value}"' for label, value in all_labels.items())
    return {"series": f"{name}{{{inside}}}", "values": values}


def gateway(name: str, values: str, **labels: str) -> Series:
    return of("strandline_gateway_" + name, values, job="strandline-gateway", **labels)


def always(value: float) -> str:
    return f"{value}x{MINUTES}"


def rising(step: float = 1) -> str:
    return f"0+{step}x{MINUTES}"


def durations(name: str, slow: str, **labels: str) -> Sequence[Series]:
    """A histogram with 95 fast requests per minute, and `slow` requests of 30 to 60 seconds."""
    return (
        of(name, rising(95), le="1.0", **labels),
        of(name, rising(95), le="30.0", **labels),
        of(name, slow, le="60.0", **labels),
        of(name, slow, le="+Inf", **labels),
    )


@dataclass(frozen=True)
class Case:
    """Values for which an alert fires, and close ones for which it must not."""

    fires: Sequence[Series]
    quiet: Sequence[Sequence[Series]]


HOUR, DAY = always(3_600), always(86_400)


STUCK = shard("phase_progress_ratio", always(0.3))


INTERVAL = "strandline_dataset_flush_interval_seconds"


HTTP, WRITES = "strandline_http_request_duration_seconds_bucket", "strandline_gateway_request_duration_seconds_bucket"


CASES: Mapping[str, Case] = {
    "StrandlineNodeDown": Case([of("up", always(0))], [[of("up", always(1))], [of("up", always(0), job="other")]]),
    "StrandlineNodeWithoutShards": Case(
        [of("strandline_shards", always(0))],
        [[of("strandline_shards", always(1))], [of("strandline_shards", f"2x{MINUTES - 5} 0x5")]],
    ),
    "StrandlineShardDown": Case(
        [shard("shard_process_state", always(1), state="down")],
        [
            [
                shard("shard_process_state", always(0), state="down"),
                shard("shard_process_state", always(1), state="waiting"),
            ]
        ],
    ),
    "StrandlineShardWaiting": Case(
        [shard("shard_process_state", always(1), state="waiting")],
        [
            [shard("shard_process_state", f"0x{MINUTES - 3} 1x3", state="waiting")],
            [shard("shard_process_state", always(1), state="down")],
        ],
    ),
    "StrandlineShardRestarting": Case(
        [shard("shard_restarts_total", f"0x{MINUTES - 10} 1+1x10")],
        [[shard("shard_restarts_total", f"0x{MINUTES - 10} 1x10")], [shard("shard_restarts_total", always(50))]],
    ),
    "StrandlineProcessRestarting": Case(
        [of("strandline_process_restarts_total", f"0x{MINUTES - 10} 1+1x10", process="front")],
        [
            [of("strandline_process_restarts_total", f"0x{MINUTES - 10} 1x10", process="front")],
            [of("strandline_process_restarts_total", always(50), process="worker")],
        ],
    ),
    "StrandlineWorkerDown": Case(
        [of("strandline_process_state", always(1), process="worker", state="down")],
        [
            [
                of("strandline_process_state", always(0), process="worker", state="down"),
                of("strandline_process_state", always(1), process="worker", state="waiting"),
            ]
        ],
    ),
    "StrandlineShardNotActive": Case(
        [shard("phase", always(0), phase="active"), shard("shard_up", always(1))],
        [
            [shard("phase", always(1), phase="active"), shard("shard_up", always(1))],
            [shard("phase", always(0), phase="active"), shard("shard_up", always(0))],
            [shard("phase", f"1x{MINUTES - 20} 0x20", phase="active"), shard("shard_up", always(1))],
        ],
    ),
    "StrandlineRecoveryStuck": Case(
        [STUCK, shard("phase", always(1), phase="replaying"), shard("phase", always(0), phase="recovering-index")],
        [
            [shard("phase_progress_ratio", rising(0.001)), shard("phase", always(1), phase="replaying")],
            [STUCK, shard("phase", always(0), phase="replaying"), shard("phase", always(1), phase="active")],
            [STUCK, shard("phase", f"0x{MINUTES - 5} 1x5", phase="replaying")],
        ],
    ),
    "StrandlineReplayJobFailed": Case(
        [shard("replay_jobs", always(1), state="failed")],
        [[shard("replay_jobs", always(0), state="failed"), shard("replay_jobs", always(9), state="pending")]],
    ),
    "StrandlineLagging": Case(
        [shard("lag_seconds", always(301))],
        [[shard("lag_seconds", always(299))], [shard("lag_seconds", f"0x{MINUTES - 5} 900x5")]],
    ),
    "StrandlineTransactionOpen": Case(
        [shard("open_transaction_seconds", always(31))],
        [[shard("open_transaction_seconds", always(2))], [shard("open_transaction_seconds", always(0))]],
    ),
    "StrandlineKafkaUnreachable": Case(
        [shard("log_retries_total", rising())],
        [[shard("log_retries_total", always(7))], [shard("log_retries_total", f"7x{MINUTES - 3} 8x3")]],
    ),
    "StrandlineClockWrong": Case(
        [shard("clock_difference_seconds", always(-61), clock="node")],
        [
            [shard("clock_difference_seconds", always(-59), clock="node")],
            [shard("clock_difference_seconds", always(59), clock="store")],
        ],
    ),
    "StrandlineDeadLetters": Case(
        [shard("dead_letters_total", f"4x{MINUTES - 5} 5x5")], [[shard("dead_letters_total", always(4))]]
    ),
    "StrandlineDeadLettersLost": Case(
        [shard("lost_dead_letters_total", f"4x{MINUTES - 5} 5x5")], [[shard("lost_dead_letters_total", always(4))]]
    ),
    "StrandlineSeriesRefused": Case(
        [shard("refused_rows_total", rising())], [[shard("refused_rows_total", always(9))]]
    ),
    "StrandlineSeriesLimitNear": Case(
        [shard("keys", always(91)), shard("keys_limit", always(100))],
        [[shard("keys", always(89)), shard("keys_limit", always(100))]],
    ),
    "StrandlineChurn": Case(
        [shard("new_keys_total", rising(200)), shard("live_keys", always(20_000))],
        [
            [shard("new_keys_total", rising(100)), shard("live_keys", always(20_000))],
            # High churn is normal for a small index.
            [shard("new_keys_total", rising(200)), shard("live_keys", always(9_000))],
        ],
    ),
    "StrandlineSamplesDropped": Case(
        [shard("dropped_samples_total", rising(), reason="too-old")],
        [[shard("dropped_samples_total", always(5), reason="too-old")]],
    ),
    "StrandlineEntriesSkipped": Case(
        [gateway("skipped_entries_total", rising(), kind="histogram")],
        [
            [gateway("skipped_entries_total", always(9), kind="histogram")],
            [shard("skipped_entries_total", always(9), kind="metadata")],
            [shard("skipped_entries_total", f"0x{MINUTES - 5} 0+1x5", kind="exemplar")],
        ],
    ),
    "StrandlineSeriesDropped": Case(
        [shard("dropped_series_total", rising(), reason="no-labels")],
        [[shard("dropped_series_total", always(5), reason="no-labels")]],
    ),
    "StrandlineRetentionMarginCritical": Case(
        [shard("retention_margin_seconds", always(8_000)), shard("kafka_retention_seconds", DAY)],
        [[shard("retention_margin_seconds", always(9_000)), shard("kafka_retention_seconds", DAY)], []],
    ),
    "StrandlineRetentionMarginLow": Case(
        [shard("retention_margin_seconds", always(43_000)), shard("kafka_retention_seconds", DAY)],
        [[shard("retention_margin_seconds", always(43_300)), shard("kafka_retention_seconds", DAY)]],
    ),
    "StrandlineStoreNotAnswering": Case(
        [shard("store_unanswered_seconds", rising(60))],
        [[shard("store_unanswered_seconds", always(29))], [shard("store_unanswered_seconds", f"0x{MINUTES - 1} 60x1")]],
    ),
    "StrandlineStoreFailing": Case(
        [shard("store_retries_total", rising())],
        [[shard("store_retries_total", always(9))], [shard("store_retries_total", rising(0.2))]],
    ),
    "StrandlineFlushBehind": Case(
        [shard("oldest_unstored_bucket_age_seconds", always(7_300)), shard("flush_interval_seconds", HOUR)],
        # A flush is spread over the interval: a bucket is stored by 0.8 of the next one.
        [[shard("oldest_unstored_bucket_age_seconds", always(6_600)), shard("flush_interval_seconds", HOUR)]],
    ),
    "StrandlineSpilling": Case(
        [shard("spilled_bytes", always(1))],
        [[shard("spilled_bytes", always(0))], [shard("spilled_bytes", f"0x{MINUTES - 20} 9x20")]],
    ),
    "StrandlineSpillNearlyFull": Case(
        [shard("spilled_bytes", always(81)), shard("spill_limit_bytes", always(100))],
        [[shard("spilled_bytes", always(79)), shard("spill_limit_bytes", always(100))]],
    ),
    "StrandlineIndexRefreshSlow": Case(
        [shard("refresh_lag_seconds", always(31))], [[shard("refresh_lag_seconds", always(2))]]
    ),
    # The test's clock begins at 0, and at the end three hours and twenty minutes have passed.
    "StrandlineHoursLate": Case(
        [of("strandline_newest_ready_hour_end_timestamp_seconds", always(0)), of(INTERVAL, HOUR)],
        [
            [of("strandline_newest_ready_hour_end_timestamp_seconds", always(2 * 3_600)), of(INTERVAL, HOUR)],
            [of("strandline_newest_ready_hour_end_timestamp_seconds", always(0)), of(INTERVAL, DAY)],
        ],
    ),
    "StrandlinePartitionNotStored": Case(
        [of("strandline_partition_behind_seconds", always(14_500), partition="3"), of(INTERVAL, HOUR)],
        [
            [of("strandline_partition_behind_seconds", always(14_300), partition="3"), of(INTERVAL, HOUR)],
            [of("strandline_partition_behind_seconds", always(14_500), partition="3"), of(INTERVAL, DAY)],
        ],
    ),
    "StrandlineDeletionNear": Case(
        [
            of("strandline_partition_behind_seconds", always(65_000), partition="3"),
            of("strandline_topic_retention_seconds", DAY),
        ],
        [
            [
                of("strandline_partition_behind_seconds", always(64_000), partition="3"),
                of("strandline_topic_retention_seconds", DAY),
            ],
            # Kafka's retention is unlimited.
            [of("strandline_partition_behind_seconds", always(64_000), partition="3")],
        ],
    ),
    "StrandlinePartitionUnread": Case(
        [of("strandline_unread_partitions", always(1))], [[of("strandline_unread_partitions", always(0))]]
    ),
    "StrandlineReadinessUnknown": Case(
        [of("strandline_readiness_age_seconds", always(121))], [[of("strandline_readiness_age_seconds", always(16))]]
    ),
    "StrandlineJobBroken": Case(
        [of("strandline_bulk_jobs", always(1), kind="import", state="broken")],
        [
            [
                of("strandline_bulk_jobs", always(0), kind="import", state="broken"),
                of("strandline_bulk_jobs", always(3), kind="import", state="paused"),
            ]
        ],
    ),
    "StrandlineJobFailed": Case(
        [of("strandline_bulk_jobs", always(1), kind="import", state="failed")],
        [
            [
                of("strandline_bulk_jobs", always(0), kind="import", state="failed"),
                of("strandline_bulk_jobs", always(3), kind="import", state="cancelled"),
            ]
        ],
    ),
    "StrandlineJobExpiring": Case(
        [of("strandline_bulk_expiry_seconds", always(86_399), kind="import")],
        [[of("strandline_bulk_expiry_seconds", always(86_400), kind="import")]],
    ),
    "StrandlineJobStalled": Case(
        [of("strandline_bulk_stalled_seconds", rising(60), kind="import")],
        [
            [of("strandline_bulk_stalled_seconds", always(900), kind="import")],
            # A part whose worker was killed, and which another one has leased.
            [of("strandline_bulk_stalled_seconds", f"0x{MINUTES - 4} 1000x4", kind="import")],
        ],
    ),
    "StrandlineQueriesFailing": Case(
        [
            of("strandline_http_requests_total", rising(6), handler="/api/v1/query", code="503"),
            of("strandline_http_requests_total", rising(94), handler="/api/v1/series", code="200"),
        ],
        [
            [
                of("strandline_http_requests_total", rising(4), handler="/api/v1/query", code="503"),
                of("strandline_http_requests_total", rising(96), handler="/api/v1/series", code="200"),
            ],
            [of("strandline_http_requests_total", rising(9), handler="/api/v1/query", code="422")],
            [of("strandline_http_requests_total", rising(9), handler="/-/ready", code="503")],
            # Remote read refuses partial answers.
            [
                of("strandline_http_requests_total", rising(9), handler="/api/v1/read", code="503"),
                of("strandline_http_requests_total", rising(9), handler="/api/v1/query", code="200"),
            ],
            [of("strandline_http_requests_total", always(9), handler="/api/v1/query", code="500")],
        ],
    ),
    "StrandlineUnauthorized": Case(
        [of("strandline_http_requests_total", rising(2), handler="/api/v1/query", code="401")],
        [
            [of("strandline_http_requests_total", always(500), handler="/api/v1/query", code="401")],
            [of("strandline_http_requests_total", rising(1), handler="/api/v1/query", code="403")],
            [of("strandline_http_requests_total", rising(50), handler="/api/v1/query", code="404")],
        ],
    ),
    "StrandlineReadsRefused": Case(
        [
            of("strandline_http_requests_total", rising(6), handler="/api/v1/read", code="503"),
            of("strandline_http_requests_total", rising(94), handler="/api/v1/read", code="200"),
        ],
        [
            [of("strandline_http_requests_total", rising(9), handler="/api/v1/read", code="200")],
            [of("strandline_http_requests_total", rising(9), handler="/api/v1/query", code="503")],
            # A recovery takes a quarter of an hour.
            [of("strandline_http_requests_total", f"0x{MINUTES - 15} 0+9x15", handler="/api/v1/read", code="503")],
        ],
    ),
    "StrandlineQueriesSlow": Case(
        durations(HTTP, rising(100), handler="/a"), [durations(HTTP, rising(95), handler="/a")]
    ),
    "StrandlineGatewayDown": Case(
        [of("up", always(0), job="strandline-gateway")], [[of("up", always(1), job="strandline-gateway")]]
    ),
    "StrandlineGatewayNotWriting": Case(
        [
            gateway("requests_total", rising(2), outcome="put-off"),
            gateway("requests_total", rising(8), outcome="written"),
        ],
        [
            [
                gateway("requests_total", rising(1), outcome="put-off"),
                gateway("requests_total", rising(99), outcome="written"),
            ],
            [gateway("requests_total", rising(5), outcome="refused")],
        ],
    ),
    "StrandlineGatewayClockDiffers": Case(
        [gateway("clock_difference_seconds", always(-61))],
        [
            [gateway("clock_difference_seconds", always(60))],
            [gateway("clock_difference_seconds", f"900x{MINUTES - 20} 0x20")],
        ],
    ),
    "StrandlineRemoteWrite2": Case(
        # Within two minutes of the first request.
        [gateway("requests_total", f"0x{MINUTES - 1} 1", outcome="remote-write-2")],
        [
            [gateway("requests_total", always(7), outcome="remote-write-2")],
            [gateway("requests_total", rising(), outcome="unsupported")],
        ],
    ),
    "StrandlineGatewayRefusing": Case(
        [gateway("requests_total", rising(1), outcome="too-large")],
        [
            [gateway("requests_total", always(5), outcome="too-large")],
            [gateway("requests_total", rising(), outcome="put-off")],
        ],
    ),
    "StrandlineGatewayUnauthorized": Case(
        # A sender with one request per minute, all of which are lost.
        [gateway("unauthorized_requests_total", rising(1), code="401")],
        [
            [gateway("unauthorized_requests_total", always(500), code="401")],
            # A single unauthorized request.
            [gateway("unauthorized_requests_total", f"0x{MINUTES - 4} 1x4", code="403")],
        ],
    ),
    "StrandlineGatewayNearlyFull": Case(
        [gateway("in_flight_bytes", always(81)), gateway("in_flight_limit_bytes", always(100))],
        [[gateway("in_flight_bytes", always(79)), gateway("in_flight_limit_bytes", always(100))]],
    ),
    "StrandlineGatewaySlow": Case(
        durations(WRITES, rising(100)),
        [durations(WRITES, rising(95))],
    ),
}

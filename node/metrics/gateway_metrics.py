"""The metrics of a gateway."""

from strandline.node.metrics.metric import Section, counter, gauge, histogram

REQUESTS = counter(
    "strandline_gateway_requests_total",
    "Remote write requests by outcome. Only written and partly-written requests are in Kafka.",
    "Senders retry put-off, kafka-unavailable and clocks-disagree. Requests that are refused, unsupported, "
    "remote-write-2 (Prometheus does not fall back to 1.0) or too-large are lost.",
    labels=("outcome",),
)
UNAUTHORIZED = counter(
    "strandline_gateway_unauthorized_requests_total",
    "Requests of all kinds that were answered with 401 (no token, or an unknown one) or 403 (a token for another "
    "purpose). They are not included in strandline_gateway_requests_total.",
    "Prometheus drops these requests. The log has path, address and reason of each.",
    labels=("code",),
)
SECONDS = histogram(
    "strandline_gateway_request_duration_seconds",
    "Duration of remote writes, including Kafka's acknowledgement.",
    "Mostly Kafka's time: check its request latencies. Senders fall behind as it approaches their timeout.",
)
SERIES = counter(
    "strandline_gateway_series_total",
    "Series in requests that Kafka has acknowledged.",
    "Samples divided by series shows how well senders batch.",
)
SAMPLES = counter(
    "strandline_gateway_samples_total",
    "Samples in requests that Kafka has acknowledged.",
    "Compare with strandline_ingested_samples_total of the shards.",
)
RECORDS = counter(
    "strandline_gateway_records_total",
    "Records that Kafka has acknowledged: a request produces at least one per partition that it has series for.",
    "Far fewer than 100 samples per record: use larger requests (max_samples_per_send), or fewer partitions.",
)
BYTES_IN = counter(
    "strandline_gateway_received_bytes_total",
    "Bytes of request bodies as they were sent.",
    "The network load.",
)
BYTES_OUT = counter(
    "strandline_gateway_produced_bytes_total",
    "Bytes of records that Kafka has acknowledged.",
    "Kafka's load, per replica.",
)
DROPPED_SERIES = counter(
    "strandline_gateway_dropped_series_total",
    "Series that were dropped from a request, or lost some of their samples, by reason. The answer was 400; the "
    "other series were written.",
    "The reason names the rule that the sender violates.",
    labels=("reason",),
)
EMPTY_SERIES = counter(
    "strandline_gateway_empty_series_total",
    "Series without a float sample, which are not forwarded.",
    "Usually native histograms; see the skipped entries.",
)
SKIPPED = counter(
    "strandline_gateway_skipped_entries_total",
    "Metadata, and histograms and exemplars of series that were not forwarded. Those of other series are "
    "forwarded. The request succeeds.",
    "Strandline stores float samples only: configure senders not to send them, see StrandlineEntriesSkipped.",
    labels=("kind",),
)
IN_FLIGHT = gauge(
    "strandline_gateway_in_flight_bytes",
    "Bytes of requests in flight: still arriving, or waiting for Kafka.",
    "Near the limit, requests wait, and are then answered with 503. strandline_gateway_arriving_bytes shows which "
    "of the two it is.",
)
IN_FLIGHT_LIMIT = gauge(
    "strandline_gateway_in_flight_limit_bytes",
    "The setting gateway.max_in_flight.",
    "Compare with strandline_gateway_in_flight_bytes.",
)
ARRIVING = gauge(
    "strandline_gateway_arriving_bytes",
    "In-flight bytes of requests that have not arrived completely.",
    "More than half of the bytes in flight, near the limit: senders are slow, or send too much at a time.",
)
UNACKNOWLEDGED = gauge(
    "strandline_gateway_oldest_unacknowledged_seconds",
    "How long the oldest request has been waiting for Kafka's acknowledgement; 0 if none is waiting.",
    "Above about a second, Kafka is slow or unavailable: check its request latencies, and whether all replicas "
    "are in sync.",
)
WAITING = gauge(
    "strandline_gateway_waiting_requests",
    "Requests that wait because the in-flight limit is reached.",
    "Above 0 for long: senders send more at a time than gateway.max_in_flight allows, or Kafka is slow.",
)
PARTITIONS = gauge(
    "strandline_gateway_partitions",
    "Number of partitions to which series are distributed. 0 until Kafka has answered.",
    "Lower than the topic's number for longer than gateway.partitions_refresh: the gateway can't reach Kafka.",
)
PRODUCER_RETRIES = counter(
    "strandline_gateway_producer_retries_total",
    "Requests to Kafka that its client retried.",
    "Some are normal when partition leaders change.",
)
PRODUCER_ERRORS = counter(
    "strandline_gateway_producer_errors_total",
    "Errors reported by the Kafka client, of all kinds.",
    "The gateway's log has the errors.",
)
PRODUCER_RENEWALS = counter(
    "strandline_gateway_producer_renewals_total",
    "How often the Kafka client was recreated after a fatal error.",
    "If it happens often, the brokers or the gateway's permissions have changed.",
)
CLOCK_DIFFERENCE = gauge(
    "strandline_gateway_clock_difference_seconds",
    "Broker time minus gateway time, for the newest acknowledged record; 0 if the record's timestamp is between "
    "sending and acknowledgement. Missing before the first record, and for topics with producer timestamps.",
    "Beyond 60 s in either direction, requests with samples outside the accepted time range get 503. Fix time "
    "synchronisation (NTP).",
)
STAGE_CPU = counter(
    "strandline_gateway_stage_cpu_seconds_total",
    "CPU time by stage of request processing: unpack, split, pack, produce.",
    "Shows where the time goes. You can run as many gateways as you need.",
    labels=("stage",),
)
CPU = counter(
    "strandline_gateway_cpu_seconds_total",
    "CPU time of the gateway's process.",
    "Near the machine's capacity: start another gateway, and distribute senders over both.",
)
RESIDENT = gauge(
    "strandline_gateway_resident_memory_bytes",
    "Resident memory of the gateway's process.",
    "Bounded by gateway.max_in_flight and the size of requests; lower those if it is too much.",
)

GATEWAY: tuple[Section, ...] = (
    Section("The gateway", (
        REQUESTS, UNAUTHORIZED, SECONDS, SERIES, SAMPLES, RECORDS, BYTES_IN, BYTES_OUT,
        DROPPED_SERIES, EMPTY_SERIES, SKIPPED,
        IN_FLIGHT, IN_FLIGHT_LIMIT, ARRIVING, UNACKNOWLEDGED, WAITING, PARTITIONS,
        PRODUCER_RETRIES, PRODUCER_ERRORS, PRODUCER_RENEWALS,
        CLOCK_DIFFERENCE, STAGE_CPU, CPU, RESIDENT,
    )),
)  # fmt: skip

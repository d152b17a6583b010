"""The metrics of a gateway."""

from strandline.node.metrics.metric import Section, counter, gauge, histogram

REQUESTS = counter(
    "strandline_gateway_requests_total",
    "Remote writes by outcome. Only written and partly-written are in Kafka.",
    "Put-off, kafka-unavailable and clocks-disagree are sent again by their senders; refused, unsupported, "
    "remote-write-2 (which Prometheus does not repeat as 1.0) and too-large are lost.",
    labels=("outcome",),
)
UNAUTHORIZED = counter(
    "strandline_gateway_unauthorized_requests_total",
    "Requests of all kinds that were answered with 401 (no token, or an unknown one) or 403 (a token for something "
    "else). They are not among strandline_gateway_requests_total.",
    "Prometheus drops what was answered like that. The log names path, address and reason of each.",
    labels=("code",),
)
SECONDS = histogram(
    "strandline_gateway_request_duration_seconds",
    "How long remote writes took, Kafka's acknowledgement included.",
    "Mostly Kafka's own time: see its request latencies. Senders fall behind when it nears their time-out.",
)
SERIES = counter(
    "strandline_gateway_series_total",
    "Series in requests that Kafka has.",
    "Samples by series tells how well senders batch.",
)
SAMPLES = counter(
    "strandline_gateway_samples_total",
    "Samples in requests that Kafka has.",
    "Compare with strandline_ingested_samples_total of the shards.",
)
RECORDS = counter(
    "strandline_gateway_records_total",
    "Records that Kafka has: a request makes at least one for each partition that it has series for.",
    "Samples by record far below 100: larger requests (max_samples_per_send), or fewer partitions.",
)
BYTES_IN = counter(
    "strandline_gateway_received_bytes_total",
    "Bytes of bodies as they were sent.",
    "The network's load.",
)
BYTES_OUT = counter(
    "strandline_gateway_produced_bytes_total",
    "Bytes of records that Kafka has.",
    "Kafka's load, once for each replica.",
)
DROPPED_SERIES = counter(
    "strandline_gateway_dropped_series_total",
    "Series that were left out of a request, or lost some of their samples, by reason. The sender was answered 400, "
    "the rest was taken.",
    "The reason says which rule the sender breaks.",
    labels=("reason",),
)
EMPTY_SERIES = counter(
    "strandline_gateway_empty_series_total",
    "Series without a float sample, which end here.",
    "Usually native histograms; see the skipped entries.",
)
SKIPPED = counter(
    "strandline_gateway_skipped_entries_total",
    "Histograms and exemplars of series that ended here, and metadata. The others travel on. The answer is a success.",
    "Strandline stores float samples only: have senders not send them, see StrandlineEntriesSkipped.",
    labels=("kind",),
)
IN_FLIGHT = gauge(
    "strandline_gateway_in_flight_bytes",
    "Bytes of requests in flight: still arriving, or waiting for Kafka.",
    "Near the limit requests wait, and are then put off. See strandline_gateway_arriving_bytes for which it is.",
)
IN_FLIGHT_LIMIT = gauge(
    "strandline_gateway_in_flight_limit_bytes",
    "The setting gateway.max_in_flight.",
    "For comparison with what is in flight.",
)
ARRIVING = gauge(
    "strandline_gateway_arriving_bytes",
    "Bytes in flight of requests that have not arrived as a whole.",
    "More than half of what is in flight, near the limit: senders are slow, or send too much at a time.",
)
UNACKNOWLEDGED = gauge(
    "strandline_gateway_oldest_unacknowledged_seconds",
    "How long the oldest request has waited for Kafka's acknowledgement; 0 if none waits.",
    "Above a second or so Kafka is slow or away: see its request latencies, and whether all replicas are in sync.",
)
WAITING = gauge(
    "strandline_gateway_waiting_requests",
    "Requests that wait for room.",
    "Above 0 for long: more is sent at a time than gateway.max_in_flight allows, or Kafka is slow.",
)
PARTITIONS = gauge(
    "strandline_gateway_partitions",
    "Partitions that series are spread over. 0 before Kafka first answered.",
    "Less than the topic has for longer than gateway.partitions_refresh: the gateway does not reach Kafka.",
)
PRODUCER_RETRIES = counter(
    "strandline_gateway_producer_retries_total",
    "Requests to Kafka that its client sent again.",
    "Some at a change of leaders are usual.",
)
PRODUCER_ERRORS = counter(
    "strandline_gateway_producer_errors_total",
    "Errors that Kafka's client told, of all kinds.",
    "See the gateway's log for what they are.",
)
PRODUCER_RENEWALS = counter(
    "strandline_gateway_producer_renewals_total",
    "How often Kafka's client was made anew after an error that ended it.",
    "More than now and then: the brokers, or the gateway's rights there, have changed.",
)
CLOCK_DIFFERENCE = gauge(
    "strandline_gateway_clock_difference_seconds",
    "Time of the brokers less that of the gateway, by the newest acknowledged record; 0 if it lies between sending and "
    "acknowledgement. Missing before the first one, and for topics with producers' times.",
    "Past 60 s, either way, samples that are out of time are put off with 503. Fix time synchronisation (NTP).",
)
STAGE_CPU = counter(
    "strandline_gateway_stage_cpu_seconds_total",
    "CPU time by stage of the work on requests: unpack, split, pack, produce.",
    "Shows where the time goes; a gateway can be started as often as needed.",
    labels=("stage",),
)
CPU = counter(
    "strandline_gateway_cpu_seconds_total",
    "CPU time of the gateway's process.",
    "Near what the machine has: start another gateway, and spread senders over both.",
)
RESIDENT = gauge(
    "strandline_gateway_resident_memory_bytes",
    "Memory of the gateway's process.",
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

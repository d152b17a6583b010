"""The metric families of a gateway. Pure."""

from prometheus_client.core import Metric as Family

from strandline.node.gateway.figures import LATENCY_BOUNDS_S, GatewayFigures
from strandline.node.metrics import gateway_metrics as gateway
from strandline.node.metrics.catalogue import GATEWAY_METRICS
from strandline.node.metrics.families import Distribution, Families, in_seconds
from strandline.node.shard.report import ProcessFigures


def gateway_families(figures: GatewayFigures, process: ProcessFigures) -> tuple[Family, ...]:
    """All families of a gateway."""
    families = Families(GATEWAY_METRICS)
    families.put_build()
    for outcome, count in figures.requests.items():
        families.put(gateway.REQUESTS, count, outcome.value)
    for code, count in figures.unauthorized.items():
        families.put(gateway.UNAUTHORIZED, count, str(code))
    latency = Distribution(LATENCY_BOUNDS_S, figures.latency_buckets, figures.latency_count, figures.latency_seconds)
    families.put_distribution(gateway.SECONDS, latency)
    families.put(gateway.SERIES, figures.series)
    families.put(gateway.SAMPLES, figures.samples)
    families.put(gateway.RECORDS, figures.records)
    families.put(gateway.BYTES_IN, figures.bytes_in)
    families.put(gateway.BYTES_OUT, figures.bytes_out)
    for reason, count in sorted(figures.dropped_series.items()):
        families.put(gateway.DROPPED_SERIES, count, reason.lower().replace("_", "-"))
    families.put(gateway.EMPTY_SERIES, figures.series_without_samples)
    families.put(gateway.SKIPPED, figures.skipped_histograms, "histogram")
    families.put(gateway.SKIPPED, figures.skipped_exemplars, "exemplar")
    families.put(gateway.SKIPPED, figures.skipped_metadata, "metadata")
    families.put(gateway.IN_FLIGHT, figures.in_flight_bytes)
    families.put(gateway.IN_FLIGHT_LIMIT, figures.in_flight_limit)
    families.put(gateway.ARRIVING, figures.arriving_bytes)
    families.put(gateway.UNACKNOWLEDGED, figures.unacknowledged_seconds)
    families.put(gateway.WAITING, figures.waiting_requests)
    families.put(gateway.PARTITIONS, figures.partitions)
    families.put(gateway.PRODUCER_RETRIES, figures.kafka.retries)
    families.put(gateway.PRODUCER_ERRORS, figures.kafka.errors)
    families.put(gateway.PRODUCER_RENEWALS, figures.kafka.renewals)
    families.put(gateway.CLOCK_DIFFERENCE, in_seconds(figures.clock_difference_ms))
    for stage, seconds in figures.stages.items():
        families.put(gateway.STAGE_CPU, seconds, stage.value)
    families.put(gateway.CPU, process.cpu_seconds)
    families.put(gateway.RESIDENT, process.resident_bytes)
    return families.all()

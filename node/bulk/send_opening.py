"""Builds what runs jobs that send series, from the settings. Openers can be pickled for other processes."""

from dataclasses import dataclass, field
from pathlib import Path

from strandline.clock import Clock
from strandline.jobs.completing import Completion
from strandline.jobs.landing.kafka_part_log import kafka_part_log, shared_part_logs
from strandline.jobs.sending.send_kind import SendKind
from strandline.kafka.clients import ClientOptions
from strandline.node.bulk.webhook import Webhook
from strandline.node.client.series_source import NodeAccess, NodeSeries, nodes_of
from strandline.node.settings.clients import librdkafka_options
from strandline.node.settings.sections import Settings


@dataclass(frozen=True, slots=True)
class CompletionOpener:
    """Opens the completion of jobs: the folder for their files and events, and the webhook."""

    folder: Path | None = None
    webhook: Webhook | None = None

    @classmethod
    def of(cls, settings: Settings) -> "CompletionOpener":
        """The opener for these settings."""
        url = settings.jobs.webhook
        return cls(settings.jobs.events_folder, Webhook(url) if url else None)

    def __call__(self, clock: Clock) -> Completion:
        return Completion(clock, self.folder, self.webhook)


@dataclass(frozen=True, slots=True)
class SendOpener:
    """Opens the kind of job that sends series."""

    kafka: ClientOptions = field(repr=False)
    nodes: tuple[NodeAccess, ...]
    completion: CompletionOpener

    @classmethod
    def of(cls, settings: Settings) -> "SendOpener":
        """The opener for these settings."""
        return cls(librdkafka_options(settings.kafka), nodes_of(settings), CompletionOpener.of(settings))

    def __call__(self, clock: Clock) -> SendKind:
        return SendKind(
            # No headers: messages are not remote-write requests, whose headers say that times were checked.
            lambda topic: kafka_part_log(self.kafka, topic, clock, headers=[]),
            NodeSeries(self.nodes),
            clock,
            self.completion(clock),
            lambda topic: shared_part_logs(self.kafka, topic, clock, headers=[]),
        )

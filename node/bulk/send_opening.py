"""From settings to what runs jobs that send series. Openers may travel to other processes."""

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
    """Where files and events of completed jobs go."""

    folder: Path | None = None
    webhook: Webhook | None = None

    @classmethod
    def of(cls, settings: Settings) -> "CompletionOpener":
        """As the settings say."""
        url = settings.jobs.webhook
        return cls(settings.jobs.events_folder, Webhook(url) if url else None)

    def __call__(self, clock: Clock) -> Completion:
        return Completion(clock, self.folder, self.webhook)


@dataclass(frozen=True, slots=True)
class SendOpener:
    """Opens the kind of jobs that send series."""

    kafka: ClientOptions = field(repr=False)
    nodes: tuple[NodeAccess, ...]
    completion: CompletionOpener

    @classmethod
    def of(cls, settings: Settings) -> "SendOpener":
        """As the settings say."""
        return cls(librdkafka_options(settings.kafka), nodes_of(settings), CompletionOpener.of(settings))

    def __call__(self, clock: Clock) -> SendKind:
        return SendKind(
            # What lands is no remote-write request: it has no times that could have been checked.
            lambda topic: kafka_part_log(self.kafka, topic, clock, headers=[]),
            NodeSeries(self.nodes),
            clock,
            self.completion(clock),
            lambda topic: shared_part_logs(self.kafka, topic, clock, headers=[]),
        )

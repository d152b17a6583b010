"""The stack's Kafka: one process that is both broker and controller (KRaft), on two loopback ports."""

import base64
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from strandline.class_archives import KAFKA, RECORDING, archive_options
from strandline.clock import Clock
from strandline.node.stack.errors import StateFolderUnusable
from strandline.node.stack.java_server import JavaServer
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import LOOPBACK, Ports
from strandline.node.stack.state import StateFolder

LOG_SIZE = "8MB"
LOG_FILES = 3


class Kafka(JavaServer):
    """The Kafka broker. Its storage is formatted once, in a temporary folder that is renamed afterwards, so an
    incompletely formatted folder is never used.
    """

    name: ClassVar[str] = "kafka"
    title: ClassVar[str] = "Kafka"
    main_jar: ClassVar[str] = "kafka_2.13"

    def __init__(
        self, folder: StateFolder, ports: Ports, options: StackOptions, *, program: Path, jars: Path, clock: Clock
    ) -> None:
        super().__init__(folder, ports.kafka, options, program=program, jars=jars, clock=clock)
        self._ports = ports
        self._storage = folder.data(self.name)
        self._format_folder = folder.temporary(f"{self.name}-storage")
        self._properties = self.conf / "server.properties"
        self._format_properties = self.conf / "format.properties"
        self._logging = self.conf / "log4j2.properties"

    def files(self) -> Mapping[Path, str]:
        extra = dict(self.options.extra_kafka_properties)
        classes = RECORDING if self.options.record_kafka_classes else archive_options(KAFKA)
        logging = f"-Dlog4j2.configurationFile={self._logging.as_uri()}"
        return {
            **self.arguments_file(self.options.kafka_heap, *classes, logging),
            self._properties: properties(server_properties(self._ports, self._storage) | extra),
            self._format_properties: properties(server_properties(self._ports, self._format_folder) | extra),
            self._logging: properties(logging_properties(self.log)),
        }

    def preparation(self) -> list[str] | None:
        if (self._storage / "meta.properties").exists():
            return None
        if self._storage.exists():
            raise StateFolderUnusable(
                f"Kafka's data in {self._storage} has lost its meta.properties, without which it can't be read",
                remedy="Put the file back, or remove all data with `strandline stack down --wipe --yes`",
            )
        shutil.rmtree(self._format_folder, ignore_errors=True)
        tool = ("kafka.tools.StorageTool", "format", "--standalone")
        return self.java(*tool, "--cluster-id", new_cluster_id(), "--config", str(self._format_properties))

    def finish_preparation(self) -> None:
        self._format_folder.rename(self._storage)

    def command(self) -> list[str]:
        return self.java("kafka.Kafka", str(self._properties))

    def check(self, timeout: float) -> None:
        from strandline.node.stack.kafka_health import check_kafka  # noqa: PLC0415 - loads the client library

        check_kafka(f"{LOOPBACK}:{self.port}", self.options.kafka_client, timeout)


def server_properties(ports: Ports, storage: Path) -> dict[str, str]:
    """The broker's configuration: a single node, without automatic creation of topics."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"BROKER://{LOOPBACK}:{ports.kafka},CONTROLLER://{LOOPBACK}:{ports.kafka_controller}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{ports.kafka_controller}",
        "log.dirs": str(storage),
        "auto.create.topics.enable": "false",
        # A single node can't have a second replica.
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        # By default a new consumer group waits three seconds for further members.
        "group.initial.rebalance.delay.ms": "0",
        # After it was killed, the broker can't start until its previous session has expired.
        "broker.heartbeat.interval.ms": "1000",
        "broker.session.timeout.ms": "4000",
        # Disables no-op metadata records, which are written twice a second and take half of an idle broker's CPU time.
        "metadata.max.idle.interval.ms": "0",
        # The default takes a quarter of the heap, and the stack has only a few compacted topics.
        "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "4",
    }


def logging_properties(log: Path) -> dict[str, str]:
    """The log4j2 configuration: warnings, and the lines about the broker's start and stop."""
    return {
        "status": "error",
        # The broker logs while it stops, so logging must not be shut down before the broker.
        "shutdownHook": "disable",
        "appender.file.type": "RollingFile",
        "appender.file.name": "file",
        "appender.file.fileName": str(log),
        "appender.file.filePattern": f"{log}.%i",
        "appender.file.layout.type": "PatternLayout",
        "appender.file.layout.pattern": "%d{ISO8601} %-5p %c{1} %m%n",
        "appender.file.policies.type": "Policies",
        "appender.file.policies.size.type": "SizeBasedTriggeringPolicy",
        "appender.file.policies.size.size": LOG_SIZE,
        "appender.file.strategy.type": "DefaultRolloverStrategy",
        "appender.file.strategy.max": str(LOG_FILES - 1),
        "rootLogger.level": "warn",
        "rootLogger.appenderRef.file.ref": "file",
        "logger.server.name": "kafka.server.KafkaRaftServer",
        "logger.server.level": "info",
        "logger.version.name": "org.apache.kafka.common.utils.AppInfoParser",
        "logger.version.level": "info",
    }


def properties(values: Mapping[str, str]) -> str:
    """The text of a Java properties file. Characters outside of ASCII are escaped."""
    return "".join(f"{_escape(key, key=True)}={_escape(value)}\n" for key, value in values.items())


def new_cluster_id() -> str:
    """A random id in Kafka's format: 16 bytes in base64. It does not begin with "-", as a command line option does."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii").rstrip("=")).startswith("-"):
        pass
    return text


def _escape(text: str, *, key: bool = False) -> str:
    escaped = ""
    for character in text:
        if character == "\\" or (key and character in ":= ") or (character in " #!" and not escaped):
            escaped += f"\\{character}"
        elif " " <= character <= "~":
            escaped += character
        else:
            units = character.encode("utf-16-be")
            escaped += "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    return escaped

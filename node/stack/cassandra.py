"""The stack's Cassandra: a ring with one node, on two loopback ports, without JMX."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import escape

from strandline.clock import Clock
from strandline.node.stack.java_server import JavaServer
from strandline.node.stack.options import StackOptions
from strandline.node.stack.ports import LOOPBACK, Ports
from strandline.node.stack.state import StateFolder

LOG_SIZE = "8MB"
LOG_FILES = 3

# The internals of Java 17 that Cassandra uses, as its distribution lists them.
_EXPORTS = (
    "java.base/java.lang.ref",
    "java.base/jdk.internal.misc",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
    "jdk.attach/sun.tools.attach",
    "jdk.compiler/com.sun.tools.javac.file",
    "jdk.unsupported/sun.misc",
)
_OPENS = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.module",
    "java.base/java.lang.reflect",
    "java.base/java.util",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.util.jar",
    "java.base/sun.nio.ch",
    "jdk.compiler/com.sun.tools.javac",
    "jdk.management/com.sun.management.internal",
)


class Cassandra(JavaServer):
    """The Cassandra node. It creates its data folder at its first start."""

    name: ClassVar[str] = "cassandra"
    title: ClassVar[str] = "Cassandra"
    main_jar: ClassVar[str] = "cassandra-all"

    def __init__(
        self, folder: StateFolder, ports: Ports, options: StackOptions, *, program: Path, jars: Path, clock: Clock
    ) -> None:
        super().__init__(folder, ports.cassandra, options, program=program, jars=jars, clock=clock)
        self._ports = ports
        self._yaml = self.conf / "cassandra.yaml"
        self._logging = self.conf / "logback.xml"

    def files(self) -> Mapping[Path, str]:
        configuration = node_configuration(self._ports, self.folder.data(self.name))
        return {
            **self.arguments_file(self.options.cassandra_heap, *self._jvm_arguments()),
            # JSON is a subset of YAML.
            self._yaml: json.dumps(configuration | dict(self.options.extra_cassandra_yaml), indent=2) + "\n",
            self._logging: logging_configuration(self.log),
        }

    def preparation(self) -> list[str] | None:
        return None

    def finish_preparation(self) -> None:
        """Never called, because there is nothing to prepare."""

    def command(self) -> list[str]:
        return self.java("org.apache.cassandra.service.CassandraDaemon")

    def check(self, timeout: float) -> None:
        from strandline.node.stack.cassandra_health import check_cassandra  # noqa: PLC0415 - loads the driver

        check_cassandra(LOOPBACK, self.port, self.options.cassandra_client, timeout)

    def _jvm_arguments(self) -> list[str]:
        # The agent measures the size of objects. Without it, Cassandra estimates the size of its memtables.
        agents = [jar for jar in self.class_path if jar.name.startswith("jamm-")]
        return [
            *(f"-javaagent:{agent}" for agent in agents),
            *(f"--add-exports={package}=ALL-UNNAMED" for package in _EXPORTS),
            *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENS),
            "-Djdk.attach.allowAttachSelf=true",
            "-Dio.netty.tryReflectionSetAccessible=true",
            f"-Dcassandra.config={self._yaml.as_uri()}",
            f"-Dlogback.configurationFile={self._logging.as_uri()}",
            f"-Dcassandra.storagedir={self.folder.data(self.name)}",
            f"-Dcassandra.logdir={self.log.parent}",
            "-Dcassandra-foreground=yes",
            # A single node does not need to wait for other nodes, or to announce anything to them.
            "-Dcassandra.skip_wait_for_gossip_to_settle=0",
            "-Dcassandra.ring_delay_ms=0",
            "-Dcassandra.shutdown_announce_in_ms=0",
            "-Dcassandra.superuser_setup_delay_ms=0",
            # By default, Cassandra's coarse clock ticks every 2 ms, which costs a sixtieth of a core when idle.
            "-Dcassandra.approximate_time_precision_ms=50",
        ]


def node_configuration(ports: Ports, data: Path) -> dict[str, object]:
    """The node's configuration. Limits that affect applications (batch sizes, mutation sizes, tombstones) have
    Cassandra's defaults, so that what works here also works in production.
    """
    return {
        "cluster_name": "strandline",
        "num_tokens": 1,
        "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
        "endpoint_snitch": "SimpleSnitch",
        "dynamic_snitch": False,
        "seed_provider": [
            {
                "class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
                "parameters": [{"seeds": f"{LOOPBACK}:{ports.cassandra_storage}"}],
            }
        ],
        "auto_bootstrap": False,
        "hinted_handoff_enabled": False,
        "listen_address": LOOPBACK,
        "rpc_address": LOOPBACK,
        "storage_port": ports.cassandra_storage,
        "native_transport_port": ports.cassandra,
        "start_native_transport": True,
        "data_file_directories": [str(data / "data")],
        "commitlog_directory": str(data / "commitlog"),
        "saved_caches_directory": str(data / "saved_caches"),
        "hints_directory": str(data / "hints"),
        "commitlog_sync": "periodic",
        "commitlog_sync_period": "10s",
        "commitlog_total_space": "512MiB",
        # A disk failure ends the server, and with it the stack: a clear error instead of a partly working node.
        "disk_failure_policy": "die",
        "commit_failure_policy": "die",
        # Dropping or truncating a table frees its space.
        "auto_snapshot": False,
        "key_cache_size": "16MiB",
        "row_cache_size": "0MiB",
        "counter_cache_size": "0MiB",
        "concurrent_reads": 16,
        "concurrent_writes": 16,
        "concurrent_compactors": 1,
        # Above the defaults, because a busy machine with two cores may be slow for some seconds.
        "read_request_timeout": "10s",
        "range_request_timeout": "20s",
        "write_request_timeout": "10s",
        "cas_contention_timeout": "5s",
        "request_timeout": "20s",
    }


def logging_configuration(log: Path) -> str:
    """The logback configuration: warnings, and the lines about the node's start and stop."""
    file = escape(str(log))
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<configuration>
  <statusListener class="ch.qos.logback.core.status.NopStatusListener"/>
  <appender name="file" class="ch.qos.logback.core.rolling.RollingFileAppender">
    <file>{file}</file>
    <rollingPolicy class="ch.qos.logback.core.rolling.FixedWindowRollingPolicy">
      <fileNamePattern>{file}.%i</fileNamePattern>
      <minIndex>1</minIndex>
      <maxIndex>{LOG_FILES - 1}</maxIndex>
    </rollingPolicy>
    <triggeringPolicy class="ch.qos.logback.core.rolling.SizeBasedTriggeringPolicy">
      <maxFileSize>{LOG_SIZE}</maxFileSize>
    </triggeringPolicy>
    <encoder>
      <pattern>%d{{ISO8601}} %-5level %logger{{0}} %msg%n</pattern>
    </encoder>
  </appender>
  <logger name="org.apache.cassandra.service.StorageService" level="INFO"/>
  <logger name="org.apache.cassandra.transport.Server" level="INFO"/>
  <!-- Advice for production machines. -->
  <logger name="org.apache.cassandra.service.StartupChecks" level="ERROR"/>
  <root level="WARN">
    <appender-ref ref="file"/>
  </root>
</configuration>
"""

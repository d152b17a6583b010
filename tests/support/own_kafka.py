"""A Kafka for one test file, which can be stopped, restarted, and made to hang."""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from strandline.node.stack import Stack, StackOptions
from strandline.node.stack.stack import kafka_and_cassandra
from support.real_kafka import eventually

# A broker that hangs longer than its session timeout is fenced. After that, no topic can be created for a while, up to
# a minute on a busy machine. Therefore, where a test is not about fencing, the session timeout exceeds every hang.
LASTING_SESSION = {"broker.session.timeout.ms": "120000"}


class OwnKafka:
    """A running Kafka, unless a test has stopped it."""

    def __init__(self, options: StackOptions) -> None:
        self._options = options
        self.stack = self._started()

    @property
    def bootstrap(self) -> str:
        """Its address, which stays the same."""
        return self.stack.kafka_bootstrap

    def stop(self) -> None:
        self.stack.stop()

    def start(self) -> None:
        """Restart it after `stop`, with its data."""
        ports = self.stack.ports
        self.stack = self._started()
        assert self.stack.ports == ports

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.stack.folder.data("kafka"))

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """A context in which it keeps its connections but does not answer."""
        process = self.stack.record.servers[0].process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        try:
            # Its threads continue for a moment.
            stat = Path(f"/proc/{process.pid}/stat")
            eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)

    def _started(self) -> Stack:
        return Stack.start(self._options, build=lambda *parts: kafka_and_cassandra(*parts)[:1])


def with_lasting_session(options: StackOptions) -> StackOptions:
    return replace(options, extra_kafka_properties={**options.extra_kafka_properties, **LASTING_SESSION})

"""The stack's options from the settings, and the display of its progress while it starts."""

from contextlib import ExitStack

from strandline.node.cli.context import Context
from strandline.node.output import Output
from strandline.node.stack.options import StackOptions
from strandline.node.stack.server import Phase
from strandline.node.stack.stack import StackStep
from strandline.node.steps import Step, Steps


def stack_options(context: Context) -> StackOptions:
    """The options of the stack, from the settings."""
    stack = context.settings().stack
    return StackOptions(
        state_dir=stack.state_folder(context.environ).absolute(),
        kafka_port=stack.kafka_port,
        cassandra_port=stack.cassandra_port,
        kafka_heap=str(stack.kafka_heap),
        cassandra_heap=str(stack.cassandra_heap),
        java_home=stack.java_home,
        start_timeout=stack.start_timeout.seconds,
        min_free_disk=stack.min_free_disk.bytes,
    )


class StackDisplay(ExitStack):
    """Shows one step per server, from its start until it is healthy. The steps overlap.

    An error that leaves the block marks open steps as failed.
    """

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output
        self._steps: Steps | None = None
        self._shown: dict[str, tuple[ExitStack, Step]] = {}

    def on_step(self, step: StackStep) -> None:
        """Called by `Stack.start`."""
        if step.phase in (Phase.STOPPING, Phase.STOPPED):
            return
        if self._steps is None:
            self._steps = self.enter_context(self._output.steps("Starting"))
        if step.server not in self._shown:
            begun = self.enter_context(ExitStack())
            self._shown[step.server] = begun, begun.enter_context(self._steps.step(step.title))
        begun, line = self._shown[step.server]
        line.note = step.phase
        if step.phase is Phase.HEALTHY:
            begun.close()

"""The keeper: the process that runs a stack, in the foreground or detached.

It runs until it is signalled to stop or a server ends. If one server ends, the keeper stops the other one and ends with
an error, because a stack with one server is of no use.
"""

import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from strandline.clock import Clock
from strandline.errors import StrandlineError
from strandline.node.stack.errors import StartCancelled
from strandline.node.stack.handshake import Handshake, failure_message, options_from, step_message
from strandline.node.stack.options import StackOptions
from strandline.node.stack.stack import OnStep, ServerBuilder, Stack, kafka_and_cassandra

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Set by a signal. Its descriptor then becomes readable, which wakes a wait on descriptors."""

    def __init__(self) -> None:
        self.is_made = False
        self._near, self._far = socket.socketpair()

    def fileno(self) -> int:
        return self._near.fileno()

    def on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        """The signal handler. Signals after the first one have no effect."""
        if not self.is_made:
            self.is_made = True
            self._far.send(b"!")

    def close(self) -> None:
        self._near.close()
        self._far.close()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGINT, SIGTERM and SIGHUP into a stop request while the block runs. Main thread only."""
    request = StopRequest()
    before = [(number, signal.signal(number, request.on_signal)) for number in _STOP_SIGNALS]
    try:
        yield request
    finally:
        for number, handler in before:
            signal.signal(number, handler)
        request.close()


def keep(
    options: StackOptions,
    *,
    on_step: OnStep,
    on_up: Callable[[Stack], None],
    clock: Clock,
    build: ServerBuilder = kafka_and_cassandra,
) -> None:
    """Run a stack in the foreground until a signal stops it. `on_up` is called when it is healthy."""
    with (
        stop_on_signals() as request,
        Stack.start(options, on_step=on_step, cancelled=lambda: request.is_made, clock=clock, build=build) as stack,
    ):
        on_up(stack)
        stack.wait(request.fileno())


def keep_detached(handshake: Handshake, *, clock: Clock, build: ServerBuilder = kafka_and_cassandra) -> None:
    """Run a stack for the `stack up` at the other end of the handshake, and independently of it after the handshake.

    An error before that is sent to the other end, and raised here as well.
    """
    try:
        message = handshake.receive()
        if message is None:
            raise StartCancelled("the process that requested the stack has ended")
        with stop_on_signals() as request:
            stack = Stack.start(
                options_from(message),
                on_step=lambda step: handshake.send(step_message(step)),
                cancelled=lambda: request.is_made or handshake.is_peer_closed(),
                clock=clock,
                build=build,
            )
            with stack:
                _hand_over(handshake, request)
                stack.wait(request.fileno())
    except StrandlineError as error:
        handshake.send(failure_message(error))
        raise
    finally:
        handshake.close()


def _hand_over(handshake: Handshake, request: StopRequest) -> None:
    """Send that the stack is up, and wait for the other end's answer or for a stop signal."""
    handshake.send({"type": "up"})
    poll = select.poll()
    poll.register(handshake, select.POLLIN)
    poll.register(request, select.POLLIN)
    poll.poll()
    if not request.is_made and handshake.receive() is None:
        raise StartCancelled("the process that requested the stack has ended")

"""The keeper: the process that holds a running stack, in the foreground or detached.

It stays until it is told to stop or a server ends. A half stack is worse than none, so one server's end takes the
other with it, and the keeper ends with an error.
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
    """Set by a signal. Readable once that has happened, so that a wait on descriptors sees it too."""

    def __init__(self) -> None:
        self.made = False
        self._near, self._far = socket.socketpair()

    def fileno(self) -> int:
        return self._near.fileno()

    def make(self, _signal: int, _frame: FrameType | None) -> None:
        """As a signal handler: the first request counts, later ones change nothing."""
        if not self.made:
            self.made = True
            self._far.send(b"!")

    def close(self) -> None:
        self._near.close()
        self._far.close()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn Ctrl-C, SIGTERM and a terminal's end into a request, for as long as the block lasts. Main thread only."""
    request = StopRequest()
    before = [(number, signal.signal(number, request.make)) for number in _STOP_SIGNALS]
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
    """Run a stack in the foreground: `on_up` is called once it is healthy; return after a signal has stopped it."""
    with (
        stop_on_signals() as request,
        Stack.start(options, on_step=on_step, cancelled=lambda: request.made, clock=clock, build=build) as stack,
    ):
        on_up(stack)
        stack.wait(request.fileno())


def keep_detached(handshake: Handshake, *, clock: Clock, build: ServerBuilder = kafka_and_cassandra) -> None:
    """Run a stack for the `stack up` at the other end of the handshake, and go on without it once it has agreed.

    An error before that goes to the other end, and is raised here as well.
    """
    try:
        message = handshake.receive()
        if message is None:
            raise StartCancelled("whoever asked for the stack is gone")
        with stop_on_signals() as request:
            stack = Stack.start(
                options_from(message),
                on_step=lambda step: handshake.send(step_message(step)),
                cancelled=lambda: request.made or handshake.is_peer_closed(),
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
    """Tell that the stack is up, and return when the other end has answered, or a signal asks for the end."""
    handshake.send({"type": "up"})
    poll = select.poll()
    poll.register(handshake, select.POLLIN)
    poll.register(request, select.POLLIN)
    poll.poll()
    if not request.made and handshake.receive() is None:
        raise StartCancelled("whoever asked for the stack is gone")

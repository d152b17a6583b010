"""Structured logs: lines for people on a terminal, one JSON object a line elsewhere.

Whoever logs takes `structlog.get_logger(__name__)` and passes values as fields, never inside the text:
`log.info("bucket stored", rows=12)`. What a piece of code works on is bound once, with `bound(shard=3, bucket=17)`, and
then stands on every line that is logged inside, by whatever library. Lines of the standard library's loggers go the
same way. Registered secrets are hidden in all of them.
"""

import logging
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import structlog
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.processors import ExceptionRenderer, JSONRenderer, StackInfoRenderer, TimeStamper, format_exc_info
from structlog.stdlib import (
    BoundLogger,
    ExtraAdder,
    LoggerFactory,
    PositionalArgumentsFormatter,
    ProcessorFormatter,
    add_log_level,
    add_logger_name,
)
from structlog.tracebacks import ExceptionDictTransformer
from structlog.typing import EventDict, Processor

from strandline.node.json_values import json_value
from strandline.node.masking import SecretMask
from strandline.node.settings.sections import LogFormat, LogLevel

# These tell of every connection they open and close; that is news only to somebody who hunts for a fault.
_CHATTY = ("cassandra", "py4j")

# Made by this module and not by whoever logs, so there is nothing to hide in them.
_OWN_FIELDS = ("timestamp", "level", "logger")


def configure_logging(level: LogLevel, log_format: LogFormat, stream: TextIO, mask: SecretMask) -> None:
    """Send all logs of this process to `stream`, from `level` up. May be called again; the last call counts.

    `log_format` is `console`, `json`, or `auto` for lines on a terminal and JSON elsewhere. Secrets that are added to
    `mask` later are hidden from then on.
    """
    people = log_format == "console" or (log_format == "auto" and stream.isatty())
    formatter = ProcessorFormatter(
        foreign_pre_chain=[ExtraAdder(), *_shared_processors()],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            # Formatted here and not by the renderer, so that the text passes the mask. Without local variables: any of
            # them may hold a secret that nobody registered.
            format_exc_info if people else ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            _masked_by(mask),
            _console_renderer(stream) if people else JSONRenderer(),
        ],
    )
    handler = _Handler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared_processors(),
            PositionalArgumentsFormatter(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=LoggerFactory(),
        wrapper_class=BoundLogger,
        # A logger is made at import, long before the settings are known; it must follow when they are.
        cache_logger_on_first_use=False,
    )


@contextmanager
def bound(
    *, shard: int | None = None, bucket: int | None = None, job: str | None = None, **fields: object
) -> Iterator[None]:
    """Put these fields on every line that is logged inside. Bindings nest; an inner one wins while it lasts."""
    named = {"shard": shard, "bucket": bucket, "job": job, **fields}
    with bound_contextvars(**{name: value for name, value in named.items() if value is not None}):
        yield


def _shared_processors() -> list[Processor]:
    return [
        merge_contextvars,
        add_log_level,
        add_logger_name,
        TimeStamper(fmt="iso", utc=True),
        StackInfoRenderer(),
    ]


def _masked_by(mask: SecretMask) -> Processor:
    """Hides secrets wherever they are: in the text, in fields at any depth, in a traceback. What every line has comes
    first, so that lines can be compared by eye.
    """

    def masked(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> EventDict:
        own = {name: event[name] for name in _OWN_FIELDS if name in event}
        rest = {name: mask.value(json_value(value)) for name, value in event.items() if name not in own}
        return {**own, "event": rest.pop("event", ""), **rest}

    return masked


class _Handler(logging.StreamHandler[TextIO]):
    """Tells of a line that can't be logged without the standard handler's list of its arguments, which no mask has
    seen.
    """

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the standard library's
        why = type(sys.exception()).__name__
        with suppress(OSError, ValueError):
            self.stream.write(f"a line from {record.pathname}:{record.lineno} can't be logged: {why}\n")


def _console_renderer(stream: TextIO) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
    )

"""Structured logs: lines for people on a terminal, and one JSON object per line elsewhere.

Modules use `structlog.get_logger(__name__)` and pass values as fields, never inside the text: `log.info("bucket
stored", rows=12)`. `with bound(shard=3, bucket=17)` adds fields to every line that is logged inside, by any library.
Lines of the standard library's loggers have the same format. Registered secrets are masked in all lines.
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

# Loggers that log every connection, which is useful only with debug.
_VERBOSE = ("cassandra", "py4j")

# Fields of this module, which have no secrets.
_OWN_FIELDS = ("timestamp", "level", "logger")


def configure_logging(level: LogLevel, log_format: LogFormat, stream: TextIO, mask: SecretMask) -> None:
    """Send all logs of this process to `stream`, from `level` up. May be called again; the last call applies.

    `log_format` is `console`, `json`, or `auto` for lines on a terminal and JSON elsewhere. Secrets that are added to
    `mask` later are masked from then on.
    """
    people = log_format == "console" or (log_format == "auto" and stream.isatty())
    formatter = ProcessorFormatter(
        foreign_pre_chain=[ExtraAdder(), *_shared_processors()],
        processors=[
            ProcessorFormatter.remove_processors_meta,
            # Formatted here and not by the renderer, so that the text is masked. Without local variables, which may
            # have secrets that are not registered.
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
    for name in _VERBOSE:
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
        # Loggers are created at import, before the settings are known.
        cache_logger_on_first_use=False,
    )


@contextmanager
def bound(
    *, shard: int | None = None, bucket: int | None = None, job: str | None = None, **fields: object
) -> Iterator[None]:
    """Add these fields to every line that is logged inside. Bindings nest; inner ones take precedence."""
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
    """Masks secrets in the text, in fields at any depth, and in tracebacks. The fields that every line has come first,
    so that lines are easy to compare.
    """

    def masked(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> EventDict:
        own = {name: event[name] for name in _OWN_FIELDS if name in event}
        rest = {name: mask.value(json_value(value)) for name, value in event.items() if name not in own}
        return {**own, "event": rest.pop("event", ""), **rest}

    return masked


class _Handler(logging.StreamHandler[TextIO]):
    """Reports a line that can't be logged without its arguments, which the standard handler would print unmasked."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is the standard library's
        why = type(sys.exception()).__name__
        with suppress(OSError, ValueError):
            self.stream.write(f"a line from {record.pathname}:{record.lineno} can't be logged: {why}\n")


def _console_renderer(stream: TextIO) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback, pad_event_to=0
    )

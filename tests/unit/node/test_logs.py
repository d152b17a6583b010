import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from strandline.node.logs import bound, configure_logging
from strandline.node.masking import SecretMask

pytestmark = pytest.mark.unit

SECRET = "hunter2-s3cr3t"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("cassandra", "py4j"):
        logging.getLogger(name).setLevel(logging.NOTSET)
    structlog.reset_defaults()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def mask() -> SecretMask:
    return SecretMask([SECRET])


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_off_a_terminal_each_line_is_a_json_object(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "auto", stream, mask)
    structlog.get_logger("strandline.store").info("bucket stored", rows=12, path=Path("/x"))
    (line,) = lines(stream)
    timestamp = line.pop("timestamp")
    assert timestamp.endswith("Z")
    assert timestamp[10] == "T"
    assert line == {"level": "info", "logger": "strandline.store", "event": "bucket stored", "rows": 12, "path": "/x"}
    assert stream.getvalue().startswith('{"timestamp": ')


def test_on_a_terminal_lines_are_readable_and_coloured(mask: SecretMask) -> None:
    stream = Terminal()
    configure_logging("info", "auto", stream, mask)
    structlog.get_logger("strandline.store").info("bucket stored", rows=12)
    assert "bucket stored" in stream.getvalue()
    assert "\x1b[" in stream.getvalue()
    assert "{" not in stream.getvalue()


def test_readable_lines_have_no_colour_off_a_terminal(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "console", stream, mask)
    structlog.get_logger("strandline.store").info("bucket stored", rows=12)
    assert stream.getvalue().endswith("Z [info     ] bucket stored [strandline.store] rows=12\n")


def test_json_may_be_requested_on_a_terminal(mask: SecretMask) -> None:
    stream = Terminal()
    configure_logging("info", "json", stream, mask)
    structlog.get_logger("x").info("hello")
    assert lines(stream)[0]["event"] == "hello"


@pytest.mark.parametrize(
    ("level", "logged"),
    [
        ("debug", ["d", "i", "w", "e"]),
        ("info", ["i", "w", "e"]),
        ("warning", ["w", "e"]),
        ("error", ["e"]),
    ],
)
def test_only_lines_from_the_level_up_are_logged(
    stream: io.StringIO, mask: SecretMask, level: Any, logged: list[str]
) -> None:
    configure_logging(level, "json", stream, mask)
    for log in (structlog.get_logger("a"), logging.getLogger("b")):
        log.debug("d")
        log.info("i")
        log.warning("w")
        log.error("e")
    assert [line["event"] for line in lines(stream)] == logged * 2


def test_lines_of_the_standard_library_are_formatted_the_same_way(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "json", stream, mask)
    with bound(shard=3):
        logging.getLogger("some.library").warning("took %d ms", 7, extra={"host": "a"})
    (line,) = lines(stream)
    del line["timestamp"]
    assert line == {"level": "warning", "logger": "some.library", "event": "took 7 ms", "host": "a", "shard": 3}


def test_lines_of_drivers_are_logged_only_at_the_debug_level(stream: io.StringIO, mask: SecretMask) -> None:
    for level in ("info", "debug"):
        configure_logging(level, "json", stream, mask)
        for name in ("cassandra.cluster", "py4j.clientserver"):
            logging.getLogger(name).info("%s at %s", name, level)
            logging.getLogger(name).warning("trouble")
    assert [line["event"] for line in lines(stream)] == [
        "trouble",
        "trouble",
        "cassandra.cluster at debug",
        "trouble",
        "py4j.clientserver at debug",
        "trouble",
    ]


def test_bound_fields_are_on_every_line_inside_and_on_none_outside(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "json", stream, mask)
    log = structlog.get_logger("x")
    with bound(shard=3, bucket=17):
        log.info("one")
        with bound(bucket=18, job="j-1", group=5):
            log.info("two")
        log.info("three", bucket=99)
    log.info("four")
    fields = [{name: line.get(name) for name in ("shard", "bucket", "job", "group")} for line in lines(stream)]
    assert fields == [
        {"shard": 3, "bucket": 17, "job": None, "group": None},
        {"shard": 3, "bucket": 18, "job": "j-1", "group": 5},
        {"shard": 3, "bucket": 99, "job": None, "group": None},
        {"shard": None, "bucket": None, "job": None, "group": None},
    ]


def test_fields_bound_in_one_thread_are_not_bound_in_another(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "json", stream, mask)
    with bound(shard=3):
        thread = threading.Thread(target=lambda: structlog.get_logger("x").info("elsewhere"))
        thread.start()
        thread.join()
    assert "shard" not in lines(stream)[0]


def fail_with_a_secret() -> None:
    local = f"{SECRET} unregistered-local-7"
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        raise ValueError(f"can't log in as {local[-1]}") from error


def test_an_exception_is_structured_in_json_and_shows_no_local_variable(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "json", stream, mask)
    try:
        fail_with_a_secret()
    except ValueError:
        structlog.get_logger("x").exception("failed")
    (line,) = lines(stream)
    assert [(raised["exc_type"], raised["exc_value"]) for raised in line["exception"]] == [
        ("ValueError", "can't log in as 7"),
        ("KeyError", "'(hidden)'"),
    ]
    assert line["exception"][0]["frames"][-1]["name"] == "fail_with_a_secret"
    assert "unregistered-local-7" not in stream.getvalue()


def test_an_exception_is_a_traceback_on_the_console_and_shows_no_local_variable(
    stream: io.StringIO, mask: SecretMask
) -> None:
    configure_logging("info", "console", stream, mask)
    try:
        fail_with_a_secret()
    except ValueError:
        logging.getLogger("x").exception("failed")
    assert "Traceback (most recent call last):" in stream.getvalue()
    assert "ValueError: can't log in as 7" in stream.getvalue()
    assert "KeyError: '(hidden)'" in stream.getvalue()
    assert "unregistered-local-7" not in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_a_registered_secret_is_in_no_line(stream: io.StringIO, mask: SecretMask, log_format: Any) -> None:
    class Client:
        def __repr__(self) -> str:
            return f"Client(password={SECRET!r})"

    configure_logging("debug", log_format, stream, mask)
    log = structlog.get_logger("x")
    with bound(job=SECRET):
        event = f"connecting with {SECRET}"
        log.info(event, client=Client(), options={"sasl.password": SECRET, "l": [{SECRET: 1}]})
        log.info("with %s", SECRET)
        logging.getLogger("y").info("with %s", SECRET, extra={"more": (SECRET,)})
        try:
            raise OSError(f"refused {SECRET}")
        except OSError as error:
            error.add_note(f"note {SECRET}")
            log.exception("oops")
            log.warning("again", error=error, exc_info=True)
    assert len(stream.getvalue().splitlines()) >= 5
    assert stream.getvalue().count("(hidden)") >= 10
    assert SECRET not in stream.getvalue()


def test_a_secret_registered_later_is_hidden_from_then_on(stream: io.StringIO, mask: SecretMask) -> None:
    configure_logging("info", "json", stream, mask)
    mask.add(["another"])
    structlog.get_logger("x").info("another one")
    assert lines(stream)[0]["event"] == "(hidden) one"


def test_a_line_that_can_not_be_formatted_is_logged_without_its_arguments(
    stream: io.StringIO, mask: SecretMask
) -> None:
    configure_logging("info", "json", stream, mask)
    logging.getLogger("x").info("%d apples", "unregistered secret")
    assert "can't be logged: TypeError" in stream.getvalue()
    assert "test_logs.py" in stream.getvalue()
    assert "unregistered" not in stream.getvalue()


def test_a_logger_from_before_the_configuration_follows_it(stream: io.StringIO, mask: SecretMask) -> None:
    log = structlog.get_logger("early")
    configure_logging("error", "json", io.StringIO(), mask)
    log.error("to the first stream")
    configure_logging("info", "json", stream, mask)
    log.info("to the second")
    assert [line["event"] for line in lines(stream)] == ["to the second"]

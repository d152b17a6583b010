"""Damaged inputs: every parser agrees with a simple model, and reads no bytes outside of the input."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from strandline.jobs.formats.csv_options import CsvOptions, CsvValue
from strandline.jobs.formats.csv_rows import parse_csv
from strandline.jobs.formats.json_lines import parse_json_lines
from strandline.jobs.formats.openmetrics import parse_openmetrics
from strandline.jobs.formats.time_formats import UnixTime
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits
from support.damaged_texts import Bytes, check_pieces, damaged, guarded
from support.sample_blocks import flat
from support.text_models import Expected, read_csv, read_json_lines, read_openmetrics

pytestmark = pytest.mark.unit

LIMITS = Limits(labels=5, label_name=12, label_value=24)
OFFSET = 1000
SEEDS = 700
OPTIONS = CsvOptions(
    6,
    (CsvValue(4, 1), CsvValue(5, "other")),
    0,
    UnixTime("s"),
    labels=(("host", 2), ("dc", 3)),
    constants=(("env", "test"),),
)
MULTILINE = CsvOptions(6, OPTIONS.values, 0, OPTIONS.time, OPTIONS.labels, OPTIONS.constants, multiline=True)
WORDS = [
    "a",
    "b",
    "host-1",
    "x y",
    'say "hi"',
    "back\\slash",
    "tab\t",
    "line\nbreak",
    "ü",
    "😀",
    "{}",
    "a,b",
    "",
    "l" * 25,
]
NUMBERS = ["1", "-2.5", "1e3", "0.1", "NaN", "+Inf", "-Inf", "1" * 30, "4.9e-324", "1e999", "x", "0x1", "1.5.5", ""]
TIMES = ["1700000000", "1700000000.123", "0", "-5", "1.5e9", "1e30", "now", "1700000000.0009"]


def csv_line(rng: random.Random) -> str:
    fields = [rng.choice(TIMES[:5]), *(rng.choice(WORDS).replace("\n", " ") for _ in range(3))]
    fields += [rng.choice([*NUMBERS[:10], ""]) for _ in range(2)]
    return ",".join(
        '"' + text.replace('"', '""') + '"' if rng.random() < 0.2 or set(text) & set(',"') else text for text in fields
    )


def openmetrics_line(rng: random.Random) -> str:
    def quoted() -> str:
        text = rng.choice(WORDS)
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'

    labels = [f"{rng.choice(['a', 'b', 'c', quoted()])}={quoted()}" for _ in range(rng.randrange(4))]
    name = rng.choice(["m", "n:o", "", "", "1x"])
    if not name:
        labels.insert(0, quoted())
    series = name + "{" + rng.choice([",", ", "]).join(labels) + "}"
    rest = rng.choice(["", "", "", ' # {a="b"} 1', " # {} 0.5 1.5", " x"])
    line = f"{series} {rng.choice(NUMBERS[:10])} {rng.choice(TIMES[:5])}{rest}"
    return rng.choice([line] * 9 + ["# TYPE m gauge", "# EOF " if rng.random() < 0.9 else "# EOF"])


def json_line(rng: random.Random) -> str:
    count = rng.randrange(1, 5)
    values = [rng.choice([1, -2.5, None, "NaN", "-Infinity", 10**25, 5e-324, 0.1]) for _ in range(count)]
    parts = {
        "metric": {rng.choice(["__name__", "a", "é", "n" * 13]): rng.choice(WORDS) for _ in range(4)},
        "values": values,
        "timestamps": [rng.randrange(10**13) for _ in range(count)],
        "more": [{"x": [1, True, None, "\ud800"]}, 0.5],
    }
    keys = rng.sample(list(parts), 4 if rng.random() < 0.9 else 3)
    return json.dumps({key: parts[key] for key in keys}, ensure_ascii=rng.random() < 0.5 and "more" in keys) or ""


def parse_rows(data: Bytes, offset: int) -> SampleBlock:
    return parse_csv(data, offset, OPTIONS, LIMITS)


@dataclass(frozen=True)
class Format:
    line: Callable[[random.Random], str]
    parse: Callable[[Bytes, int], SampleBlock]
    model: Callable[[bytes, int], Expected]
    marks: bytes


FORMATS = {
    "csv": Format(csv_line, parse_rows, lambda data, at: read_csv(data, at, OPTIONS, LIMITS), b'",\n\r.1e-'),
    "openmetrics": Format(
        openmetrics_line,
        lambda data, at: parse_openmetrics(data, at, LIMITS),
        lambda data, at: read_openmetrics(data, at, LIMITS),
        b'"{}=,\\ \t\n\r#n1e.-',
    ),
    "json": Format(
        json_line,
        lambda data, at: parse_json_lines(data, at, LIMITS),
        lambda data, at: read_json_lines(data, at, LIMITS),
        b'"{}[]:,\\ \t\n\r1e.-un0',
    ),
}


def generated(form: Format, rng: random.Random) -> bytes:
    ends = rng.choice([["\n"], ["\r\n"], ["\n", "\r\n", "\n\n"]])
    text = "".join(form.line(rng) + rng.choice(ends) for _ in range(rng.randrange(1, 12)))
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.8:
        data = damaged(data, rng, form.marks)
    return data


@pytest.mark.parametrize("name", FORMATS)
def test_valid_and_damaged_inputs_have_the_same_result_as_in_a_simple_model(name: str) -> None:
    form = FORMATS[name]
    good = bad = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)  # noqa: S311
        data = generated(form, rng)
        expected = form.model(data, OFFSET)
        for before in (False, True):
            block = form.parse(guarded(data, before=before), OFFSET)
            assert flat(block) == expected.samples, (seed, data)
            assert (block.records, block.nulls) == (expected.records, expected.nulls), (seed, data)
            assert block.bad.total == len(expected.bad), (seed, data)
            assert [example.offset for example in block.bad.examples] == expected.bad[:20], (seed, data)
        good += len(expected.samples)
        bad += len(expected.bad)
    # Both good and bad records are common.
    assert good > SEEDS
    assert bad > SEEDS


@pytest.mark.parametrize("name", FORMATS)
def test_an_input_gives_the_same_as_its_pieces(name: str) -> None:
    form = FORMATS[name]
    for seed in range(SEEDS, SEEDS + 200):
        rng = random.Random(seed)  # noqa: S311
        # After the end marker every line is bad, but a piece does not include the marker of another one.
        data = generated(form, rng).replace(b"# EOF", b"# eof")
        check_pieces(form.parse, data, OFFSET, rng)


def test_any_bytes_are_records_or_bad_records() -> None:
    for seed in range(300):
        rng = random.Random(seed)  # noqa: S311
        data = rng.randbytes(rng.randrange(300))
        if seed % 2:
            data = bytes(rng.choice(b'{}[]",:=\\\n\r #1e.-metricvalus') for _ in range(rng.randrange(300)))
        for form in FORMATS.values():
            block = form.parse(guarded(data), OFFSET)
            flat(block)
            assert (block.records, block.bad.total) == (form.model(data, OFFSET).records, block.bad.total)


def test_rows_of_multiline_files_end_where_the_number_of_quotes_is_even() -> None:
    for seed in range(SEEDS):
        rng = random.Random(seed)  # noqa: S311
        data = generated(FORMATS["csv"], rng)
        block = parse_csv(guarded(data), OFFSET, MULTILINE, LIMITS)
        flat(block)
        rows, start, quotes = [], 0, 0
        for at, byte in enumerate(data):
            quotes += byte == ord('"')
            if (byte == ord("\n") and quotes % 2 == 0) or at + 1 == len(data):
                rows.append(data[start : at + 1])
                start = at + 1
        assert block.records == sum(row not in (b"\n", b"\r\n", b"\r") for row in rows), (seed, data)
        # Each row has the same result alone as among the others.
        alone = [sample for row in rows for sample in flat(parse_csv(guarded(row), OFFSET, MULTILINE, LIMITS))]
        assert alone == flat(block), (seed, data)

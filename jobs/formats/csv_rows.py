"""CSV: rows with a time, one or more values, and labels in columns."""

from dataclasses import dataclass

import numpy as np

from strandline.arrays import I64s
from strandline.jobs.formats.block_builder import BlockBuilder, Bytes
from strandline.jobs.formats.csv_options import METRIC_LABEL, CsvOptions
from strandline.jobs.formats.kernels.block import FLAG
from strandline.jobs.formats.kernels.csv_rows import (
    CONSTANT,
    METRIC,
    PATTERN,
    PLAN_WORDS,
    RFC3339,
    UNIX,
    read_rows,
)
from strandline.jobs.formats.time_formats import SHIFTS, PatternTime, Rfc3339Time, UnixTime, pattern_steps
from strandline.jobs.formats.time_zones import LocalOffsets, local_offsets
from strandline.jobs.sample_block import SampleBlock
from strandline.wire.decode import Limits


def parse_csv(
    data: Bytes, offset: int, options: CsvOptions, limits: Limits | None = None, *, max_bytes: int | None = None
) -> SampleBlock:
    """Parse complete rows; `offset` is their position in the file. At the start of the file, a header is skipped.

    Empty lines are not records. A bad row has no samples, even if some of its values are valid. Labels must be UTF-8;
    unused columns may have any bytes. With `max_bytes`, the block may end early, see `BlockBuilder`.
    """
    plan = _Plan.of(options)
    builder = BlockBuilder(data, offset, limits or Limits(), values=len(options.values), max_bytes=max_bytes)
    builder.cursor[FLAG] = options.header and offset == 0

    def step() -> int:
        need: int = read_rows(
            builder.address,
            len(builder.data),
            builder.state,
            plan.marks,
            plan.time,
            plan.clock,
            plan.columns,
            plan.labels,
            plan.texts,
        )
        return need

    return builder.fill(step)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The options as arguments of the kernel."""

    marks: tuple[int, int, int, int]
    time: tuple[int, int, int]
    clock: tuple[I64s, I64s, I64s, I64s]
    columns: tuple[I64s, I64s]
    labels: tuple[I64s, I64s, I64s]
    texts: Bytes

    @classmethod
    def of(cls, options: CsvOptions) -> "_Plan":
        texts = bytearray()

        def span(text: str) -> tuple[int, int]:
            start = len(texts)
            texts.extend(text.encode())
            return start, len(texts) - start

        sources: dict[bytes, tuple[str, int, str]] = {METRIC_LABEL.encode(): (METRIC_LABEL, METRIC, "")}
        sources.update({name.encode(): (name, column, "") for name, column in options.labels})
        sources.update({name.encode(): (name, CONSTANT, value) for name, value in options.constants})
        plan = np.zeros((len(sources), PLAN_WORDS), dtype=np.int64)
        for index, encoded in enumerate(sorted(sources)):
            name, column, constant = sources[encoded]
            plan[index] = column, *span(name), *span(constant)
        metrics = [value.metric for value in options.values]
        metric_columns = np.array([m if isinstance(m, int) else CONSTANT for m in metrics], dtype=np.int64)
        metric_spans = np.array([span(m) if isinstance(m, str) else (0, 0) for m in metrics], dtype=np.int64)
        value_columns = np.array([value.column for value in options.values], dtype=np.int64)
        identity = {column for _, column in options.labels}.union(m for m in metrics if isinstance(m, int))
        kind, shift, clock = _clock(options)
        return cls(
            marks=(
                ord(options.delimiter),
                ord(options.quote) if options.quote else -1,
                int(options.multiline),
                options.columns,
            ),
            time=(options.time_column, kind, shift),
            clock=clock,
            columns=(value_columns, _runs(identity)),
            labels=(plan, metric_columns, metric_spans),
            texts=np.frombuffer(texts, dtype=np.uint8),
        )


def _runs(columns: set[int]) -> I64s:
    """Column indices as runs of consecutive ones, each with its first and last."""
    runs: list[list[int]] = []
    for column in sorted(columns):
        if runs and runs[-1][1] == column - 1:
            runs[-1][1] = column
        else:
            runs.append([column, column])
    return np.array(runs, dtype=np.int64).reshape(-1, 2)


def _clock(options: CsvOptions) -> tuple[int, int, tuple[I64s, I64s, I64s, I64s]]:
    """The kind of time, the decimal shift of its unit, and the arrays for a pattern."""
    steps, zone = np.empty(0, dtype=np.int64), LocalOffsets()
    match options.time:
        case UnixTime(unit):
            kind, shift = UNIX, SHIFTS[unit]
        case Rfc3339Time():
            kind, shift = RFC3339, 0
        case PatternTime(pattern, timezone):
            kind, shift = PATTERN, 0
            steps, zone = pattern_steps(pattern), local_offsets(timezone)
    covered = np.array([zone.earliest, zone.latest], dtype=np.int64)
    return kind, shift, (steps, zone.breaks, zone.offsets, covered)

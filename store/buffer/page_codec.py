"""Encodes runs of samples as compressed frames, and decodes them.

A frame has some thousands of samples of series with ascending numbers, and can be read on its own: reading one series
opens one frame of a page. Kernels turn times and values into streams of mostly small numbers, and pcodec compresses
each stream. Its search for modes and deltas is switched off, because the kernels do that better: they know where a
series begins.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from pcodec import ChunkConfig, DeltaSpec, ModeSpec, standalone

from strandline.arrays import F64s, I64s, U32s, run_lengths
from strandline.store.buffer.kernels.times import join_times, split_times
from strandline.store.buffer.kernels.values import join_values, split_values

# A query for one series decompresses one frame of each page. Half as many samples make sealing a tenth slower.
SAMPLES_PER_FRAME = 1 << 14
_SAME_TIMES = 32  # A flag in the byte that has the kind of a run's values.
_CONFIG = ChunkConfig(
    compression_level=8, mode_spec=ModeSpec.classic(), delta_spec=DeltaSpec.no_op(), enable_8_bit=True
)


@dataclass(frozen=True, slots=True)
class Runs:
    """Series by ascending number, each with the samples `[first_sample[i], first_sample[i + 1])`: at least one, with
    ascending times.
    """

    number: U32s
    first_sample: I64s
    time: I64s
    value: F64s

    def __len__(self) -> int:
        return len(self.number)

    def part(self, first: int, stop: int) -> "Runs":
        """Return the series `[first, stop)`."""
        start, end = int(self.first_sample[first]), int(self.first_sample[stop])
        return Runs(
            self.number[first:stop],
            self.first_sample[first : stop + 1] - start,
            self.time[start:end],
            self.value[start:end],
        )


@dataclass(frozen=True, slots=True)
class Frame:
    """The position of a frame's streams in its page's bytes, and what they contain."""

    start: int
    lengths: tuple[int, ...]
    first_number: int
    last_number: int
    series: int
    samples: int


@dataclass(frozen=True, slots=True)
class FrameSeries:
    """The series of a frame, the number of samples of each, and the shape of each run. This is read first, and is often
    enough to see that nothing in the frame is wanted.
    """

    number: U32s
    counts: U32s
    shapes: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class _Streams:
    """The streams of a frame, in the order in which they are stored."""

    gaps: U32s
    counts: U32s
    shapes: npt.NDArray[np.uint8]
    time_starts: I64s
    time_steps: I64s
    time_step_changes: I64s
    whole_starts: I64s
    whole_steps: I64s
    raw_starts: I64s
    raw_steps: I64s


_STREAMS = tuple(field.name for field in fields(_Streams))
_TYPES = (np.uint32, np.uint32, np.uint8) + (np.int64,) * 7
_FIRST_SAMPLE_STREAM = 3


def encode(runs: Runs) -> tuple[bytes, tuple[Frame, ...]]:
    """Compress runs into frames, one after the other."""
    frames, pieces, start, first = [], [], 0, 0
    while first < len(runs):
        enough = int(np.searchsorted(runs.first_sample, runs.first_sample[first] + SAMPLES_PER_FRAME, side="right")) - 1
        stop = min(max(enough, first + 1), len(runs))
        part = runs.part(first, stop)
        streams = _split(part)
        packed = [_pack(getattr(streams, name)) for name in _STREAMS]
        lengths = tuple(map(len, packed))
        frames.append(Frame(start, lengths, int(part.number[0]), int(part.number[-1]), len(part), len(part.time)))
        pieces += packed
        start += sum(lengths)
        first = stop
    return b"".join(pieces), tuple(frames)


def decode_series(frame: Frame, data: bytes) -> FrameSeries:
    """Decode the series of a frame in `data`, the bytes of its page."""
    gaps, counts, shapes = _unpack(frame, data, 0, _FIRST_SAMPLE_STREAM)
    return FrameSeries(gaps.cumsum(dtype=np.uint32), counts, shapes)


def decode_samples(frame: Frame, data: bytes, series: FrameSeries, *, to: I64s, time: I64s, value: F64s) -> None:
    """Write the times and values of a frame's runs into columns, run i from `to[i]`; a run with a negative `to` is
    skipped.
    """
    starts, steps, step_changes, whole_starts, whole_steps, raw_starts, raw_steps = _unpack(
        frame, data, _FIRST_SAMPLE_STREAM, len(_STREAMS)
    )
    same, kinds = series.shapes & _SAME_TIMES, series.shapes & ~np.uint8(_SAME_TIMES)
    join_times(series.counts, same, starts, steps, step_changes, to, time)
    join_values(series.counts, kinds, whole_starts, whole_steps, raw_starts, raw_steps, to, value, value.view(np.int64))


def _split(runs: Runs) -> _Streams:
    series, samples = len(runs), len(runs.time)
    same, kinds = np.empty(series, dtype=np.uint8), np.empty(series, dtype=np.uint8)
    time_starts, time_steps, whole_starts, raw_starts = (np.empty(series, dtype=np.int64) for _ in range(4))
    time_step_changes, whole_steps, raw_steps = (np.empty(samples, dtype=np.int64) for _ in range(3))
    n_starts, n_steps, n_changes = split_times(
        runs.first_sample, runs.time, same, time_starts, time_steps, time_step_changes
    )
    n_whole_starts, n_whole_steps, n_raw_starts, n_raw_steps = split_values(
        runs.first_sample,
        runs.value,
        runs.value.view(np.int64),
        kinds,
        whole_starts,
        whole_steps,
        raw_starts,
        raw_steps,
    )
    return _Streams(
        gaps=np.diff(runs.number, prepend=np.uint32(0)),
        counts=run_lengths(runs.first_sample).astype(np.uint32),
        shapes=kinds + same * np.uint8(_SAME_TIMES),
        time_starts=time_starts[:n_starts],
        time_steps=time_steps[:n_steps],
        time_step_changes=time_step_changes[:n_changes],
        whole_starts=whole_starts[:n_whole_starts],
        whole_steps=whole_steps[:n_whole_steps],
        raw_starts=raw_starts[:n_raw_starts],
        raw_steps=raw_steps[:n_raw_steps],
    )


def _pack(numbers: npt.NDArray[Any]) -> bytes:
    # pcodec can't encode an empty array.
    return bytes(standalone.simple_compress(numbers, _CONFIG)) if len(numbers) else b""


def _unpack(frame: Frame, data: bytes, first: int, stop: int) -> list[npt.NDArray[Any]]:
    """Decompress the streams `[first, stop)`."""
    start = frame.start + sum(frame.lengths[:first])
    streams: list[npt.NDArray[Any]] = []
    for length, kind in zip(frame.lengths[first:stop], _TYPES[first:stop], strict=True):
        packed = data[start : start + length]
        streams.append(standalone.simple_decompress(packed) if packed else np.empty(0, dtype=kind))
        start += length
    return streams

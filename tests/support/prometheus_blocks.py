"""A writer of Prometheus blocks in plain Python, written only from the description of the format."""

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Sample = tuple[int, int]  # Milliseconds, and the value's bits.
Labels = tuple[tuple[str, str], ...]
STALE = 0x7FF0000000000002
ULID = "01HZZZZZZZZZZZZZZZZZZZZZZ0"
WORD = 2**64
XOR, HISTOGRAM, FLOAT_HISTOGRAM, XOR_2 = 1, 2, 3, 4


@dataclass(frozen=True)
class Chunk:
    """Samples in XOR encoding, or the bytes of another encoding."""

    samples: Sequence[Sample] = ()
    encoding: int = XOR
    data: bytes | None = None

    def encoded(self) -> bytes:
        return xor_chunk(self.samples) if self.data is None else self.data

    @property
    def times(self) -> tuple[int, int]:
        times = [time for time, _ in self.samples] or [0]
        return min(times), max(times)


Series = tuple[Labels, Sequence[Chunk]]


def _crc_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CRCS = [_crc_of_byte(byte) for byte in range(256)]


def crc(data: bytes) -> bytes:
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum = (checksum >> 8) ^ _CRCS[(checksum ^ byte) & 0xFF]
    return struct.pack(">I", checksum ^ 0xFFFFFFFF)


def uvarint(number: int) -> bytes:
    number %= WORD
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def varint(number: int) -> bytes:
    return uvarint((number << 1) ^ (number >> 63))


def text(string: str) -> bytes:
    data = string.encode("utf-8", "surrogateescape")
    return uvarint(len(data)) + data


def _bits_of(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data)


def _step_change(change: int) -> str:
    if change == 0:
        return "0"
    for prefix, width in (("10", 14), ("110", 17), ("1110", 20)):
        if -(2 ** (width - 1)) < change <= 2 ** (width - 1):
            return prefix + f"{change % 2**width:0{width}b}"
    return "1111" + f"{change % WORD:064b}"


def xor_chunk(samples: Sequence[Sample], *, reopened: bool = False) -> bytes:
    """The data of a chunk. If it was reopened before its first difference, the window is the complete word."""
    bits = ""
    leading, trailing = (0, 0) if reopened else (64, 64)
    time, value, step = 0, 0, 0
    for number, (new_time, new_value) in enumerate(samples):
        if number == 0:
            bits += _bits_of(varint(new_time)) + f"{new_value:064b}"
            time, value = new_time, new_value
            continue
        new_step = (new_time - time) % WORD
        bits += _bits_of(uvarint(new_step)) if number == 1 else _step_change(_signed(new_step - step))
        different = f"{new_value ^ value:064b}"
        if "1" not in different:
            bits += "0"
        else:
            before = min(len(different) - len(different.lstrip("0")), 31)
            behind = len(different) - len(different.rstrip("0"))
            if before >= leading and behind >= trailing:
                bits += "10"
            else:
                leading, trailing = before, behind
                bits += f"11{leading:05b}{(64 - leading - trailing) % 64:06b}"
            bits += different[leading : 64 - trailing]
        time, value, step = new_time, new_value, new_step
    bits += "0" * (-len(bits) % 8)
    return struct.pack(">H", len(samples)) + bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8))


def _signed(word: int) -> int:
    word %= WORD
    return word - WORD if word >= WORD // 2 else word


def _chunk_files(series: Sequence[Series], chunks_a_file: int) -> tuple[list[bytes], list[list[int]]]:
    """The content of the files, and the references of each series' chunks."""
    header = struct.pack(">IB3x", 0x85BD40DD, 1)
    files: list[bytes] = []
    references = []
    written = 0
    for _, chunks in series:
        own = []
        for chunk in chunks:
            if written % chunks_a_file == 0:
                files.append(header)
            own.append((len(files) - 1) << 32 | len(files[-1]))
            body = bytes([chunk.encoding]) + chunk.encoded()
            files[-1] += uvarint(len(body) - 1) + body + crc(body)
            written += 1
        references.append(own)
    return files, references


def _section(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content + crc(content)


def _entry(labels: Labels, chunks: Sequence[Chunk], own: Sequence[int], symbol: Mapping[str, int]) -> bytes:
    content = uvarint(len(labels))
    for name, value in labels:
        content += uvarint(symbol[name]) + uvarint(symbol[value])
    content += uvarint(len(chunks))
    reference = latest = 0
    for number, (chunk, place) in enumerate(zip(chunks, own, strict=True)):
        begin, end = chunk.times
        content += varint(begin) if number == 0 else uvarint(begin - latest)
        content += uvarint(end - begin) + (uvarint(place) if number == 0 else varint(place - reference))
        latest, reference = end, place
    return uvarint(len(content)) + content + crc(content)


@dataclass(frozen=True)
class TableOfContents:
    """Where the sections of an index begin, and how tombstones reference its series."""

    symbols: int
    series: int
    all_postings: int
    postings_table: int
    contents: int
    references: list[int]


def _index(
    series: Sequence[Series], chunk_references: Sequence[Sequence[int]], version: int, *, all_last: bool
) -> tuple[bytes, TableOfContents]:
    out = struct.pack(">IB", 0xBAAAD700, version)
    symbols_at = len(out)
    texts = sorted({"", *(text for labels, _ in series for label in labels for text in label)})
    content = struct.pack(">I", len(texts))
    symbol: dict[str, int] = {}
    for number, symbol_text in enumerate(texts):
        symbol[symbol_text] = number if version == 2 else symbols_at + 4 + len(content)
        content += text(symbol_text)
    out += _section(content)
    series_at = len(out)
    references = []
    for (labels, chunks), own in zip(series, chunk_references, strict=True):
        if version == 2:
            out += bytes(-len(out) % 16)
        references.append(len(out) // 16 if version == 2 else len(out))
        out += _entry(labels, chunks, own, symbol)
    label_indices = len(out)
    out += bytes(-len(out) % 4)
    out += _section(struct.pack(">II", 1, 0))
    lists: dict[tuple[str, str], list[int]] = {("", ""): references}
    for (labels, _), reference in zip(series, references, strict=True):
        for label in labels:
            lists.setdefault(label, []).append(reference)
    postings_at = len(out)
    entries = []
    for (name, value), own_references in lists.items():
        out += bytes(-len(out) % 4)
        entries.append(uvarint(2) + text(name) + text(value) + uvarint(len(out)))
        if not name:
            all_at = len(out)
        out += _section(struct.pack(f">{len(own_references) + 1}I", len(own_references), *own_references))
    label_table = len(out)
    out += _section(struct.pack(">I", 0))
    postings_table = len(out)
    if all_last:
        entries.append(entries.pop(0))
    out += _section(struct.pack(">I", len(entries)) + b"".join(entries))
    contents = len(out)
    toc = struct.pack(">6Q", symbols_at, series_at, label_indices, label_table, postings_at, postings_table)
    return out + toc + crc(toc), TableOfContents(symbols_at, series_at, all_at, postings_table, contents, references)


def _tombstones(deleted: Iterable[tuple[int, int, int]]) -> bytes:
    content = b"".join(uvarint(series) + varint(first) + varint(last) for series, first, last in deleted)
    return struct.pack(">IB", 0x0130BA30, 1) + content + crc(content)


def write_block(
    folder: Path,
    series: Sequence[Series],
    *,
    ulid: str = ULID,
    version: int = 2,
    chunks_a_file: int = 1 << 30,
    deleted: Iterable[tuple[int, int, int]] = (),
    all_last: bool = False,
) -> TableOfContents:
    """Write a block into a folder with its name. `deleted` has a series' number, and the first and last time."""
    block = folder / ulid
    (block / "chunks").mkdir(parents=True)
    files, references = _chunk_files(series, chunks_a_file)
    for number, content in enumerate(files, start=1):
        (block / "chunks" / f"{number:06d}").write_bytes(content)
    index, places = _index(series, references, version, all_last=all_last)
    (block / "index").write_bytes(index)
    (block / "tombstones").write_bytes(
        _tombstones((places.references[number], first, last) for number, first, last in deleted)
    )
    samples = [sample for _, chunks in series for chunk in chunks for sample in chunk.samples]
    times = [time for time, _ in samples] or [0]
    stats = {
        "numSamples": len(samples),
        "numSeries": len(series),
        "numChunks": sum(len(chunks) for _, chunks in series),
    }
    meta = {"ulid": ulid, "minTime": min(times), "maxTime": max(times) + 1, "stats": stats, "version": 1}
    (block / "meta.json").write_text(json.dumps(meta), encoding="utf-8")
    return places

"""Finds the blocks in the folder of a Prometheus TSDB or of a snapshot, by their meta.json."""

import json
import re
from dataclasses import dataclass
from typing import Any

from pyarrow.fs import FileInfo, FileSelector, FileSystem, FileType

from strandline.jobs.formats.byte_ranges import RangeFile, UnreadableSource, named_errors
from strandline.jobs.formats.prometheus_blocks.errors import DamagedBlock

META, INDEX, CHUNKS, TOMBSTONES = "meta.json", "index", "chunks", "tombstones"
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_META_VERSION = 1
_MAX_META_BYTES = 16 << 20  # Far above the size of a list of all blocks from which a block was compacted.


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block: its folder, its time range from `min_time` to `max_time` (exclusive) in milliseconds, the numbers of
    series, chunks and samples by its meta.json, and the total size of its files.
    """

    ulid: str
    path: str
    min_time: int
    max_time: int
    series: int
    chunks: int
    samples: int
    size: int


def find_blocks(fs: FileSystem, path: str) -> list[BlockInfo]:
    """The blocks in a folder, or the folder itself, ordered by time. Other folders, such as the WAL, are ignored.

    Raises `UnreadableSource` if there is no block, and `DamagedBlock` for a block without a valid meta.json.
    """
    path = path.rstrip("/") or path
    with named_errors(path):
        if fs.get_file_info(path).type == FileType.File:
            raise UnreadableSource(
                f"{path} is a file, but Prometheus blocks are folders",
                remedy="Name the folder of a TSDB, of a snapshot or of one block",
            )
        entries = fs.get_file_info(FileSelector(path))
    if any(entry.base_name == META and entry.type == FileType.File for entry in entries):
        return [_block(fs, path)]
    folders = [e.path for e in entries if e.type == FileType.Directory and _ULID.fullmatch(e.base_name)]
    if not folders:
        raise UnreadableSource(
            f"{path} has no Prometheus blocks",
            remedy="Name the folder of a TSDB, of a snapshot (POST /api/v1/admin/tsdb/snapshot) or of one block",
        )
    return sorted((_block(fs, folder) for folder in folders), key=lambda one: (one.min_time, one.max_time, one.ulid))


def _block(fs: FileSystem, path: str) -> BlockInfo:
    with named_errors(path):
        files = [entry for entry in fs.get_file_info(FileSelector(path, recursive=True)) if entry.type == FileType.File]
    names = {_name_below(path, entry) for entry in files}
    for needed in (META, INDEX):
        if needed not in names:
            raise DamagedBlock(f"{path}/{needed}", None, "the file is missing")
    meta_path = f"{path}/{META}"
    meta = _read_meta(fs, meta_path)
    stats = meta.get("stats", {})
    if not isinstance(stats, dict):
        raise DamagedBlock(meta_path, None, '"stats" is not an object')
    return BlockInfo(
        ulid=_text(meta, "ulid", meta_path),
        path=path,
        min_time=_integer(meta, "minTime", meta_path),
        max_time=_integer(meta, "maxTime", meta_path),
        series=_integer(stats, "numSeries", meta_path, 0),
        chunks=_integer(stats, "numChunks", meta_path, 0),
        samples=_integer(stats, "numSamples", meta_path, 0),
        size=sum(entry.size for entry in files),
    )


def _name_below(path: str, entry: FileInfo) -> str:
    return str(entry.path)[len(path) + 1 :]


def _read_meta(fs: FileSystem, path: str) -> dict[str, Any]:
    with RangeFile(fs, path) as file:
        if file.size > _MAX_META_BYTES:
            raise DamagedBlock(path, None, f"its size of {file.size} bytes is over the limit of {_MAX_META_BYTES}")
        data = file.read(0, file.size)[: file.size].tobytes()
    try:
        meta = json.loads(data)
    except json.JSONDecodeError as error:
        raise DamagedBlock(path, error.pos, f"not JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise DamagedBlock(path, None, f"not JSON: {error}") from error
    if not isinstance(meta, dict):
        raise DamagedBlock(path, None, "not a JSON object")
    version = meta.get("version")
    if version != _META_VERSION:
        raise DamagedBlock(path, None, f"version {version!r} of the block format is not {_META_VERSION}")
    return meta


def _integer(record: dict[str, Any], name: str, path: str, default: int | None = None) -> int:
    value = record.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DamagedBlock(path, None, f'"{name}" is {value!r}, not an integer')
    return value


def _text(record: dict[str, Any], name: str, path: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not _ULID.fullmatch(value):
        raise DamagedBlock(path, None, f'"{name}" is {value!r}, not a ULID')
    return value

"""Writes and reads what a job leaves in the store: its result, key summaries, key bytes and undecodable records.

Missing or damaged rows raise `ResultDamaged`, which names the job.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import cramjam
import numpy as np

from strandline.arrays import Rows, run_lengths
from strandline.index.key_summary import KeySummary, PartKeyBytes
from strandline.recovery.replay.faults import FaultyRecord, decode_faults
from strandline.recovery.replay.job_result import (
    FAULTS,
    KEYS,
    RESULT,
    SUMMARY,
    JobResult,
    StoredGroup,
    attempt_of,
)
from strandline.recovery.replay.key_codec import decode_keys, decode_summary
from strandline.recovery.replay.record_counts import counts_from_json, counts_to_json
from strandline.recovery.replay.sections import ResultDamaged, pack_sections, unpack_sections
from strandline.store.jobs import Job, JobResultOf, ResultRow
from strandline.store.protocol import Store
from strandline.store.rows import LateSamples

FetchPartKeys = Callable[[Rows], PartKeyBytes]


def encode_result(result: JobResult) -> ResultRow:
    """The row that marks a job as done."""
    text = json.dumps(
        {
            "groups": [_group_to_json(group) for group in result.groups],
            "counts": counts_to_json(result.counts),
            "data_expires": result.data_expires,
            "keys": result.keys,
            "key_rows": result.key_rows,
            "fault_rows": result.fault_rows,
        }
    )
    return ResultRow(RESULT, 0, pack_sections([bytes(cramjam.zstd.compress(text.encode(), level=3))]))


def decode_result(row: ResultRow, *, named: str) -> JobResult:
    """The inverse of `encode_result`."""
    (packed,) = unpack_sections(row.data, named=named, count=1)
    try:
        found = json.loads(bytes(cramjam.zstd.decompress(packed)))
        return JobResult(
            groups=tuple(map(_group, found.pop("groups"))), counts=counts_from_json(found.pop("counts")), **found
        )
    except (cramjam.DecompressionError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultDamaged(named, f"it can't be read: {error}") from error


def read_result(store: Store, job: Job) -> JobResult | None:
    """The result of a leased job; None unless it was written under this lease."""
    for row in store.result(_place(job), RESULT):
        return decode_result(row, named=_named(job))
    return None


def read_summary(store: Store, job: Job) -> tuple[KeySummary, FetchPartKeys]:
    """The summaries of a finished job's keys, and a function that fetches the bytes of some keys, given their rows, in
    that order.

    It reads only the rows that contain them, each once per call. Keys that were met one after the other are stored
    together, so callers should request many keys at a time, in order.
    """
    place, named = _place(job), _named(job)
    result = _done(store, job)
    rows = [(row.seq, decode_summary(row.data, named=named)) for row in store.result(place, SUMMARY)]
    summary = KeySummary.concatenated([one for _, one in rows])
    if (len(rows), len(summary)) != (result.key_rows, result.keys):
        raise ResultDamaged(
            named,
            f"it has {len(rows)} rows of {len(summary)} keys instead of {result.key_rows} rows of {result.keys}",
        )
    first = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(one) for _, one in rows], out=first[1:])
    seqs = [seq for seq, _ in rows]

    def keys_of(wanted: Rows) -> PartKeyBytes:
        order = np.argsort(wanted, kind="stable")
        sorted_rows = wanted[order]
        bounds = np.searchsorted(sorted_rows, first)
        found = [
            _key_row(store, place, seqs[at], int(first[at + 1] - first[at]), named).take(
                sorted_rows[bounds[at] : bounds[at + 1]] - first[at]
            )
            for at in np.flatnonzero(run_lengths(bounds)).tolist()
        ]
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return PartKeyBytes.concatenated(found).take(back)

    return summary, keys_of


def read_faults(store: Store, job: Job) -> Iterator[FaultyRecord]:
    """The undecodable records of a finished job, in order of their offsets."""
    named, rows = _named(job), _done(store, job).fault_rows

    def chunks() -> Iterator[bytes]:
        count = 0
        for row in store.result(_place(job), FAULTS):
            yield unpack_sections(row.data, named=named, count=1)[0]
            count += 1
        if count != rows:
            raise ResultDamaged(named, f"it has {count} rows of faults instead of {rows}")

    return decode_faults(chunks(), named=named)


def _done(store: Store, job: Job) -> JobResult:
    result = read_result(store, job)
    if result is None:
        raise ResultDamaged(_named(job), "it does not exist")
    return result


def _key_row(store: Store, place: JobResultOf, seq: int, count: int, named: str) -> PartKeyBytes:
    for row in store.result(place, KEYS, seq=seq):
        return decode_keys(row.data, count, named=named)
    raise ResultDamaged(named, f"its row {seq} of keys is missing")


def _group_to_json(group: StoredGroup) -> dict[str, Any]:
    late: list[dict[str, int]] = [asdict(one) for one in group.late]
    for one in late:
        if one["hours"] == 1:
            # Nodes of older versions do not know this field.
            del one["hours"]
    return asdict(group) | {"checksum": group.checksum.hex(), "late": late}


def _group(found: dict[str, Any]) -> StoredGroup:
    late = tuple(LateSamples(**one) for one in found["late"])
    return StoredGroup(**(found | {"checksum": bytes.fromhex(found["checksum"]), "late": late}))


def _place(job: Job) -> JobResultOf:
    return JobResultOf(job.shard, job.bucket, attempt_of(job))


def _named(job: Job) -> str:
    return f"the replay job of shard {job.shard}, bucket {job.bucket}, attempt {attempt_of(job)!r}"

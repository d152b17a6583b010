"""The properties of answers that must hold at any time and at the end."""

from collections import defaultdict

from strandline.index.bitmaps import to_bitmap
from strandline.index.documents import decode_part_key
from strandline.index.part_columns import LIVE
from strandline.node.query.live_shard import warnings_of
from strandline.node.shard.reader import ShardReader
from strandline.node.shard.shard import Shard
from strandline.node.shard.status import Phase
from strandline.recovery.cutting import Cutting
from strandline.recovery.periods import Period
from strandline.recovery.present import Present
from strandline.recovery.readiness import StoredDataset, Verdict, readiness
from strandline.recovery.verification.layout import ShardLayout
from strandline.recovery.verification.shard import verify_shard
from strandline.time_range import ALL_TIMES, TimeRange
from support.memory_store import MemoryStore
from support.seeded.dataset import GRACE, HOUR, POLICY, SHARD
from support.seeded.ledger import Name
from support.seeded.processes import ShardProcess
from support.seeded.simulation import Simulation
from support.seeded.violations import Violation
from support.shard_samples import samples_in

# An answer without a warning has everything that had reached the log this many milliseconds ago.
_COMPLETE_AFTER = 16_000
# The maximum age of queried times: that of late samples, and some more.
_ASKED_BACK = 2 * HOUR


def check_answer(simulation: Simulation, one: ShardProcess) -> None:
    """Check that an answer has nothing that was never written, and a warning if it may lack something."""
    shard, phase = one.shard, one.status.phase
    if shard is None or phase not in (Phase.REPLAYING, Phase.CATCHING_UP, Phase.ACTIVE) or one.is_busy:
        return
    # As of the time of the request: the answer may take hours if the process stalls.
    before = simulation.time.now_ms - _COMPLETE_AFTER
    first, last = sorted(simulation.time.now_ms - simulation.random.randint(0, _ASKED_BACK) for _ in range(2))
    within = simulation.random.choice((ALL_TIMES, TimeRange(first, last)))
    warnings = warnings_of(shard, one.status, phase, within)
    found = _found(shard, within)
    simulation.events["answer with a warning" if warnings else "complete answer"] += 1
    _check_samples(simulation, found, must_have=None if warnings else before, within=within)


def check_hours(simulation: Simulation, host: str) -> None:
    """Check that no hour is ready before its end, or while something that reached the log in it is not stored."""
    store, clock, options = MemoryStore(simulation.server), simulation.clocks[host], simulation.options
    present = Present(clock, store.server_time)
    present.poll_store_clock()
    now, manifest = present.now_ms(), store.manifest(SHARD)
    stored = StoredDataset(
        SHARD.dataset,
        Cutting(POLICY.flush_interval, GRACE),
        options.groups,
        [manifest],
        now - options.row_lifetime,
        now,
    )
    # Also future hours: a clock that is ahead may take them for past ones.
    true_hour = simulation.time.now_ms // HOUR
    for hour in {now // HOUR - 1, now // HOUR, true_hour - 2, true_hour - 1, true_hour, true_hour + 7}:
        if readiness(stored, Period(hour)).verdict is not Verdict.READY:
            continue
        simulation.events["hour ready"] += 1
        end = (hour + 1) * HOUR
        if simulation.time.now_ms < end:
            raise Violation(f"hour {hour} is ready {end - simulation.time.now_ms} ms before its end")
        behind = simulation.stored_up_to()
        for record in simulation.ledger.records:
            # For records that no shard read when they arrived, only the brokers' clock knows that time.
            is_of_hour = record.seen_at is not None and max(record.seen_at, record.time) < end
            if is_of_hour and record.offset >= behind:
                raise Violation(f"hour {hour} is ready, and offset {record.offset} of it is not stored")


def check_settled(simulation: Simulation, one: ShardProcess) -> None:
    """Check that the state of an active shard that has read everything is exactly right."""
    shard = one.shard
    assert shard is not None
    logged = {sample for record in simulation.ledger.records for sample in simulation.ledger.taken(record)}
    if lacking := [sample for sample in simulation.ledger.acknowledged if sample not in logged]:
        raise Violation(f"{len(lacking)} samples were acknowledged and are in no record, such as {lacking[0]}")
    _check_samples(simulation, _found(shard), must_have=simulation.time.now_ms)
    if simulation.model.knows_keys:
        _check_keys(simulation, shard)
    manifest = shard.parts.store.manifest(SHARD)
    assert manifest is not None
    layout = ShardLayout(SHARD, simulation.options.groups, POLICY)
    found = verify_shard(MemoryStore(simulation.server), manifest, layout, one.parts.clock)
    if found.findings:
        raise Violation("verification finds: " + "; ".join(f"{each.kind}: {each.what}" for each in found.findings))


def _check_samples(
    simulation: Simulation,
    found: dict[Name, dict[int, float]],
    must_have: int | None,
    within: TimeRange = ALL_TIMES,
) -> None:
    """Check that all samples in the requested times that reached the log below `must_have` are there, unless they are
    older than the retention. If a sample was written more than once, a newer value from after that is also accepted.
    """
    ledger, model = simulation.ledger, simulation.model
    retained = simulation.time.now_ms - POLICY.retention
    allowed: dict[tuple[Name, int], list[float]] = defaultdict(list)
    required: dict[tuple[Name, int], bool] = {}
    for record in ledger.records:
        for sample in ledger.taken(record):
            place = sample.name, sample.time
            is_lost = model.is_lost(record.offset, model.group_of(sample.name[0]))
            is_due = must_have is not None and record.seen_at is not None and record.seen_at <= must_have
            if is_due and not is_lost:
                allowed[place].clear()
                required[place] = True
            allowed[place].append(sample.value)
    for name, samples in found.items():
        for time, value in samples.items():
            values = allowed.get((name, time))
            if values is None:
                raise Violation(f"{name} at {time} is found, and was never written")
            if value not in values:
                raise Violation(f"{name} at {time} is found as {value}, and was written as {values}")
    for name, time in required:
        if time >= retained and within.first <= time <= within.last and time not in found.get(name, ()):
            raise Violation(f"{name} at {time} is in the log and not in an answer without a warning")


def _check_keys(simulation: Simulation, shard: Shard) -> None:
    expected = simulation.model.keys(shard.position)
    rows = shard.index.columns.rows
    rows = rows.take(rows.present())
    names = _names(simulation, shard)
    found = {
        names[part_id]: (start, last, None if end == LIVE else end)
        for part_id, start, last, end in zip(
            rows.part_id.tolist(), rows.start.tolist(), rows.last.tolist(), rows.end.tolist(), strict=True
        )
    }
    if len(found) != len(rows):
        raise Violation("a key has two part ids")
    wanted = {name: (key.start, key.last, key.end) for name, key in expected.items()}
    if simulation.model.was_rewound:
        # Index buckets that a rewind has superseded still have keys: a key that had been purged and came back may keep
        # its old start.
        found = {
            name: (max(start, wanted[name][0]), last, end)
            for name, (start, last, end) in found.items()
            if name in wanted
        }
    if found != wanted:
        differing = {name: (found.get(name), wanted.get(name)) for name in found.keys() | wanted.keys()}
        differing = {name: pair for name, pair in differing.items() if pair[0] != pair[1]}
        raise Violation(f"keys differ, found and wanted (start, last, end): {differing}")


def _names(simulation: Simulation, shard: Shard) -> dict[int, Name]:
    """The key of each part id, which must never change."""
    rows = shard.index.columns.rows
    batch = shard.index._documents.fetch(to_bitmap(rows.part_id[rows.present()]))
    names: dict[int, Name] = {}
    for place, part_id in enumerate(batch.part_ids.tolist()):
        labels = decode_part_key(batch.part_key(place))
        names[part_id] = labels["__name__"], labels["name"]
    for part_id, name in names.items():
        if simulation.named.setdefault(part_id, name) != name:
            raise Violation(f"part id {part_id} was that of {simulation.named[part_id]}, and is now that of {name}")
    return names


def _found(shard: Shard, within: TimeRange = ALL_TIMES) -> dict[Name, dict[int, float]]:
    """All samples in a time range, of all keys in the index, as a query finds them."""
    reader = ShardReader(shard)
    # Without threads, because the same history must always run in the same way.
    reader.close()
    return samples_in(shard, reader, within)

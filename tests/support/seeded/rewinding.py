"""`offsets rewind`, as an operator runs it on a host."""

from contextlib import suppress
from typing import cast

from strandline.errors import Retryable
from strandline.node.shard.ownership import StillOwned, take_shard
from strandline.recovery.cutting import Cutting
from strandline.recovery.offset_policy import LogState
from strandline.recovery.present import Present
from strandline.recovery.rewinding import RewindPlan, RewindRefused, ToBucket, plan_rewind, rewind
from strandline.store.protocol import Fenced, Store
from strandline.store.rows import ManifestRows, Ownership
from support.seeded.dataset import GRACE, POLICY, SHARD
from support.seeded.hooked_store import Fault
from support.seeded.simulation import Simulation
from support.seeded.violations import Crash


def rewind_shard(simulation: Simulation, host: str, buckets: int, fault: Fault | None = None) -> None:
    """Run `offsets rewind`, to some buckets before the newest one."""
    process, store = simulation.process_on(host)
    store.fault = fault
    clock, log, as_store = simulation.clocks[host], simulation.reader(), cast("Store", store)
    target = ToBucket(max(simulation.model.cuts, default=0) + 1 - buckets)

    def plan_of(manifest: ManifestRows) -> RewindPlan:
        ends = log.ends()
        now = LogState(log.topic_id(), ends.start, ends.last_stable)
        cutting = Cutting(POLICY.flush_interval, GRACE)
        return plan_rewind(SHARD, manifest, target, now, groups=simulation.options.groups, cutting=cutting, most_rows=2)

    def taken() -> Ownership:
        return take_shard(as_store, SHARD, log.topic_id(), clock, process)

    with suppress(Crash, Retryable, StillOwned, Fenced, RewindRefused):
        rewind(as_store, taken, plan_of, clock, Present(clock, store.server_time))
        simulation.events["rewound"] += 1
    store.is_dead = True
    process.kill()

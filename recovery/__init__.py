"""Recovery: everything that brings a shard from its checkpoints back to the end of the log, and keeps account of what
is stored.

Inputs are the manifest's rows, Kafka's offsets and the results of replay jobs; outputs are decisions as values, and
rows of jobs in the store. The main types:

- `checkpoints.Progress`: how far a shard is stored, computed from its manifest.
- `offset_policy.Decision`: where a start continues to read.
- `cut_planning.PlannedCut` and `planning.WantedJobs`: the plan of a replay.
- `job_board.JobBoard`, `lease_board.LeaseBoard`, `lease_keeper.LeaseKeeper`: leased jobs in the store. Bulk jobs use
  the same leases.
- `replay_worker.ReplayWorker`: takes jobs in waves and has them run by a `replay.runner.JobRunner`.
- `readiness.Readiness`: whether an hour or a day is complete.
- `rewinding.RewindPlan`: what a rewind reads again.
- `verification`: whether everything in a manifest exists and is consistent.

It may use `wire`, `index` and `store`. It must not know Spark, or a node's processes, HTTP and settings.
docs/recovery.md explains the design.
"""

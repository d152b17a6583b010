"""Evaluation of plans.

A shard evaluates a fragment over its samples (`fragment_rows`, `partials`), into a partial result. The front merges the
partial results of all shards (`partials`) and evaluates the rest of the plan with them (`evaluator`, `calls`), into a
`Result` (`results`). `partial_steps` slices and joins partial results by steps, for the result cache.

It must not know where samples come from, nor how partial results are transported.
"""

"""Plans evaluated: fragments over the samples of a shard, their partial results merged, and the rest of a plan."""

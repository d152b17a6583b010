"""The supervisor: one process for each shard, started, watched, and started again; and what systemd is told of them."""

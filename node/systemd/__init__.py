"""systemd: what the service manager is told while a node or a gateway runs, and the units that it runs them by.

In flows how the node's shards stand; out flow datagrams of sd_notify. What to tell is decided by pure functions
(`telling`), sent by a thin socket (`notify`). Without systemd nothing is sent, and nothing else changes.
"""

"""The supervisor of a node: a small process that starts, watches and restarts the others, and does nothing else.

In go the settings, the reports of child processes and the requests of the front; out come processes, and the state of
the node for the front, systemd and the log. Decisions are pure functions over values (`liveness`, `restarting`,
`reloading`); `keeper` carries them out for one child, `processes` for all, `supervisor` in a thread, `service` in a
process with signals and sockets.

It must not know what shards, front and worker do, and must not import what they need for it: `strandline node` has to
stay small, since everything else ends with it.
"""

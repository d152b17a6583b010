"""The supervisor of a node: a small process that starts, monitors and restarts the node's other processes.

- Inputs: the settings, the reports of the child processes, and the requests of the front.
- Outputs: child processes, and the state of the node for the front, systemd and the log.

Decisions are pure functions over values (`liveness`, `restarting`, `reloading`). `ProcessKeeper` carries them out for
one child, `NodeProcesses` for all children, `Supervisor` in a thread, and `NodeService` in a process with signals and
sockets.

It must not know what shards, the front and the worker do, and must not import what they need: if the supervisor ends,
every other process of the node ends too, so `strandline node` has to stay small.
"""

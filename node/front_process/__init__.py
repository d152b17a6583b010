"""The process of the HTTP front, a child of the node's supervisor.

The supervisor gives it a listening socket and the folder of the node's sockets. It asks the supervisor how the shards
stand (`supervisor_client`), asks the shards themselves for data, and reports at a socket of its own that its event loop
turns (`running`). Everything that it answers is in `strandline.node.front`; it keeps no state that its next process
would need.
"""

"""The process of the HTTP front, a child of the node's supervisor.

The supervisor passes it a listening socket and the folder of the node's sockets. The front gets the state of the shards
from the supervisor (`supervisor_client`), requests data from the shards' processes, and reports the iterations of its
event loop at its own socket (`running`). What it serves is in `strandline.node.front`. It must not keep state that the
next front process would need.
"""

"""The stack: a real Kafka and a real Cassandra as child processes, for development, tests and `strandline stack`.

Input: `StackOptions` (a state folder, ports, heaps) and the jars that set-up installed. Output: two servers that have
passed a health check, on loopback addresses that stay the same from run to run. `Stack` (stack.py) starts, monitors and
stops both. `kafka.py` and `cassandra.py` have each server's configuration files and command. `strandline.node.tether`
ties each server to its parent process. `strandline stack up` starts a detached process, the keeper, that runs the
stack: `keeper.py` is the keeper's side, and `control.py` the command's side.

This package must not know settings files, datasets, topics or tables.
"""

from strandline.node.stack.options import StackOptions
from strandline.node.stack.stack import Stack

__all__ = ["Stack", "StackOptions"]

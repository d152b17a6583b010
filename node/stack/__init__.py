"""The stack: a real Kafka and a real Cassandra as child processes, for development, tests and `strandline stack`.

In go `StackOptions` (a state folder, ports, heaps) and the jars that set-up fetched; out come two servers that have
proved their health, on loopback addresses that stay the same from run to run. `Stack` (stack.py) starts, watches and
stops the pair; `kafka.py` and `cassandra.py` know each server's files and command; `strandline.node.tether`
ties each server to its parent; `keeper.py` and `control.py` are the two ends of the detached process behind
`strandline stack up`.

It must not know settings files, datasets, topics or tables: what is put into the servers is other packages' affair.
"""

from strandline.node.stack.options import StackOptions
from strandline.node.stack.stack import Stack

__all__ = ["Stack", "StackOptions"]

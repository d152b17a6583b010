"""Real servers for fixtures, started by the code that `strandline stack` uses."""

import shutil
from collections.abc import Iterator

from strandline.node.stack import Stack, StackOptions


def running(options: StackOptions) -> Iterator[Stack]:
    """A stack for a fixture: started, handed over, stopped."""
    with Stack.start(options) as stack:
        yield stack
    # The logs stay with pytest's other leavings, to be read after a failure; the data is of no use.
    for name in ("kafka", "cassandra"):
        shutil.rmtree(stack.folder.data(name))

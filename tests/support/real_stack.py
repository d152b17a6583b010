"""Real servers for fixtures, started by the code of `strandline stack`."""

import shutil
from collections.abc import Iterator

from strandline.node.stack import Stack, StackOptions


def running(options: StackOptions) -> Iterator[Stack]:
    """A stack for a fixture: started, yielded, stopped."""
    with Stack.start(options) as stack:
        yield stack
    # The logs stay with pytest's other files, for the analysis of failures; the data is removed.
    for name in ("kafka", "cassandra"):
        shutil.rmtree(stack.folder.data(name))

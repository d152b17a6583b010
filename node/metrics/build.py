"""Which Strandline this is."""

import platform

from strandline import __version__
from strandline.node.metrics.families import Families
from strandline.node.metrics.node_metrics import BUILD


def put_build(families: Families) -> None:
    """Tell it."""
    families.put_info(BUILD, __version__, platform.python_version())

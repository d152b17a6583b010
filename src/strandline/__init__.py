"""Strandline: a time-series indexing storage node.

Each folder at the top of the checkout is one package below this name: `node/` is `strandline.node`, and so on. The
links beside this file make it so without a copy. Only what every package may use lives here: errors and the clock.
"""

__version__ = "0.1.0"

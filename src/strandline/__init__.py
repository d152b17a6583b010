"""Strandline: a time-series indexing storage node.

Each top-level folder of the checkout is one subpackage: `node/` is `strandline.node`, and so on, through the symbolic
links in this folder. The modules in this folder itself are those that every package may import, such as `errors` and
`clock`.
"""

__version__ = "0.2.0"

"""PyLucene: Apache Lucene in the Python process, with our own Java extension in the same wheel.

In: Java sources (`java/`), the list of Lucene's classes that Python uses (`classes.txt`) and Lucene's jars. Out: the
wheel of the module `lucene` (`build`), and typed access to what is in it: its `classes`, `queries` made of them, and
what their `failures` mean. The extension holds what must not cross the border between Python and Java once per
document, and nothing else.

Nothing in here knows of buckets, shards or PromQL. `build` runs before anything is installed: it may import nothing but
the standard library and the tree of errors, and this file imports nothing at all.
"""

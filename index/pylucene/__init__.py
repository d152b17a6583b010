"""PyLucene: Apache Lucene in the Python process, with our own Java extension in the same wheel.

In: Java sources (`java/`), the list of Lucene's classes that Python uses (`classes.txt`) and Lucene's jars. Out: the
wheel of the module `lucene` (`build`), and typed access to it: `classes`, `queries`, `commits`, and `failures`, which
translates Java's exceptions. The extension has what would otherwise take a call from Python to Java per document, and
nothing else.

It must not know of buckets, shards or PromQL. `build` runs before anything is installed: it may only import the
standard library and the error classes, and this file imports nothing.
"""

"""Regular expressions with Go's semantics, including the positions of groups, for `label_replace`.

In: an expression and a column of texts. Out: for each text the positions of its first match and of the groups.
An expression is parsed (`syntax`, with `characters` and `scripts`) and compiled to a program (`program`), which a
kernel runs. The kernel simulates all paths through the program at the same time (a Pike VM), so its time is linear in
the text. Python's `re` backtracks, which takes exponential time for some expressions.

It must not know labels or PromQL. The index, which matches full values, uses Lucene instead.
"""

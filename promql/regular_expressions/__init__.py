"""Regular expressions as Go has them, with the places of their groups: what `label_replace` needs.

The index matches whole values, and leaves that to Lucene. Here an expression is read (`syntax`), made a program
(`program`), and run over a column of texts. All ways through a program are followed at once, so that no expression is
slow for a text: Python's own would try them one after the other, which some expressions make endless.
"""

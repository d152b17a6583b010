"""Compiled code of the API: JSON from columns, and the samples that count at each step.

As in `strandline.wire.kernels`, functions carry no annotations; what each takes and gives stands in its docstring.
Texts are written into an array that is surely long enough, from a place on; each function gives the place behind.
"""

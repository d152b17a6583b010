"""The demonstration: a node on a real stack, written to, killed, recovered, and proved to have lost nothing.

It starts what an operator would start, by the same commands, and sees only what any client sees over HTTP.
"""

"""The status page: what a person sees of a node in a browser, and the JSON that the page asks for.

How the shards stand, what the shards answer and which hours are ready come in; files that never change while the node
runs, and small JSON documents, go out. Every list has a limit: at a million series the page asks for tens of lines.
"""

"""Bulk jobs as the HTTP front of a node knows them: read from the store in the background, for metrics, for the status
page and for clients, and paused, resumed and cancelled for operators.

In come rows of the store; out go figures (`figures.py`) and answers (`routes.py`). The event loop never waits for the
store: one thread calls it (`store_thread.py`), and answers have deadlines. No part is ever run here, and no module that
reads files or packs records is imported: workers do that, see `strandline.node.bulk`.
"""

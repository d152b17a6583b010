"""The demo: writes to a node on a real stack, kills the node, lets it recover, and checks that no sample was lost.

`scenario` is the sequence of steps. It starts the same commands as an operator (`programs`), and uses only the HTTP
API. `sending` writes samples and records the acknowledged ones in the `ledger`, which compares them with those that are
read back. `bulk` imports a file and exports to Parquet. The result is a `DemoReport` (`report`).
"""

"""The benchmarks of `strandline bench`: measurements of the real components, with a description of the machine.

Input: the size of the load. Output: a report (a frozen dataclass), which the command shows as tables or JSON, and
plots. A benchmark runs the same code as a node, with realistic data.

Each benchmark has a module `*_bench`, and most have a `*_report`. The generated series are in `fleet`, `query_fleet`
and `promql_fleet`, and their samples in `scrapes`. Servers of other vendors, which get the same data for comparison,
are called peers (`peer`, `import_peer`, `query_servers`, `promql_servers`).
"""

"""Runs test scripts for PromQL in the format of Prometheus' promqltest. It reads no files and no clock.

In: the text of a script, which loads series and states the expected results of queries (`script_parser`, `commands`).
Out: a finding for each evaluation. Each query is evaluated by the engine of this package with the series divided into
different numbers of shards (`running`), and its result is compared with the expected one (`comparison`).

It must not know the command line.
"""

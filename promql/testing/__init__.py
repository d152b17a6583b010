"""Test scripts for PromQL, in the format of Prometheus' promqltest: text in, findings out. Pure: no files and no clock.

A script loads series and states what queries give over them (`script_parser`, `commands`). Each evaluation is run by
the engine of this package with the series split over several numbers of shards (`running`), and compared with what
the script expects (`comparison`). It must not know the command line.
"""

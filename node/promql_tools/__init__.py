"""The reports of `strandline promql`: of test scripts (`test_report`) and of plans (`plan_report`).

In come results of the PromQL engine, out go reports as lines for people and as JSON. The package must not know the
command line, and needs no node.
"""
